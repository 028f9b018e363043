/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * report_gather.c - gathers reports of ranks on other nodes over MPI (invade --report).
 *
 * The root is the first rank on the node of the `invade` that wants the report.  In the last
 * finalize, after a barrier, the root asks the ranks of other core tables one by one.  It sends an
 * empty message.  The rank answers at once with the time by its clock, and then with its remote
 * report (libinvasive/member/remote_report.c).  The two clocks are compared to within half a round trip.
 *
 * The root does not wait longer than the limits below, and a rank that is later is not reported.
 * Since a barrier came before, only a rank that dies in these milliseconds is late.
 */
#define _GNU_SOURCE
#include "mpi-shim/setup/report_gather.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/setup/agreement.h"
#include "libinvasive/process.h"
#include "libinvasive/table/protocol.h"

#include <stdlib.h>

/* A rank answers in microseconds, unless the kernel runs others first: 2 s for one rank.  For all
 * of them 10 s, and 20 ms more for each, so that finalize ends where many do not answer. */
static const uint64_t answer_limit_ns = 2000000000, limit_ns = 10000000000,
                      limit_for_each_ns = 20000000;

struct report_header {
    uint64_t now_ns; /* by the sender's clock */
    uint64_t bytes;  /* of the remote report that follows */
};

/* What a rank sends.  Not freed after a time limit: an open request may still write into it. */
struct report_message {
    struct report_header header;
    struct inv_remote_report report;
};

static bool is_remote(const struct shim_location *rank, const struct shim_location *root)
{
    return rank->recorded && rank->domain != root->domain;
}

void shim_report_gather_plan(struct shim_report_plan *plan, const struct shim_location *all)
{
    int root = 0, size = shim_world.size;
    while (root < size && !(all[root].recorded && all[root].reporter_here))
        root++;
    if (root == size)
        return;
    plan->count = 0;
    for (int r = 0; r < size; r++)
        plan->count += is_remote(&all[r], &all[root]);
    if (root == shim_world.rank && plan->count) {
        plan->from = malloc(plan->count * sizeof *plan->from);
        unsigned n = 0;
        for (int r = 0; plan->from && r < size; r++)
            if (is_remote(&all[r], &all[root]))
                plan->from[n++] = r;
        inv_assert(!plan->from || n == plan->count);
    }
    if (plan->from || is_remote(&all[shim_world.rank], &all[root])) {
        plan->takes_part = true;
        plan->root = root;
    }
}

static bool receive_within(const struct shim_report_plan *plan, void *to, size_t bytes, int from,
                           uint64_t within_ns)
{
    MPI_Request request;
    return shim_pmpi.Irecv(to, (int)bytes, MPI_BYTE, from, SHIM_TAG_REPORT, plan->comm,
                           &request) == MPI_SUCCESS &&
           shim_complete_all(1, &request, within_ns);
}

static bool send_within(const struct shim_report_plan *plan, const void *what, size_t bytes, int to,
                        uint64_t within_ns)
{
    MPI_Request request;
    return shim_pmpi.Isend(what, (int)bytes, MPI_BYTE, to, SHIM_TAG_REPORT, plan->comm,
                           &request) == MPI_SUCCESS &&
           shim_complete_all(1, &request, within_ns);
}

static bool receive_report(const struct shim_report_plan *plan, struct report_message *m, int rank)
{
    uint64_t asked = inv_now_ns();
    if (!send_within(plan, NULL, 0, rank, answer_limit_ns) ||
        !receive_within(plan, &m->header, sizeof m->header, rank, answer_limit_ns))
        return false;
    uint64_t heard = inv_now_ns();
    if (m->header.bytes > sizeof m->report ||
        !receive_within(plan, &m->report, (size_t)m->header.bytes, rank, answer_limit_ns))
        return false;
    inv_remote_report_submit(&m->report, (size_t)m->header.bytes,
                             (int64_t)(asked + (heard - asked) / 2 - m->header.now_ns));
    return true; /* also without an rmd: the other ranks wait to be asked */
}

static uint64_t all_limit_ns(const struct shim_report_plan *plan)
{
    return limit_ns + plan->count * limit_for_each_ns;
}

static void receive_reports(const struct shim_report_plan *plan)
{
    uint64_t limit = inv_now_ns() + all_limit_ns(plan);
    struct report_message *m = NULL;
    for (unsigned i = 0; i < plan->count && inv_now_ns() < limit; i++) {
        if (!m && !(m = malloc(sizeof *m)))
            return;
        if (!receive_report(plan, m, plan->from[i]))
            m = NULL;
    }
    free(m);
}

static void send_report(const struct shim_report_plan *plan)
{
    struct report_message *m = malloc(sizeof *m);
    if (!m || !receive_within(plan, NULL, 0, plan->root, all_limit_ns(plan)))
        return;
    size_t bytes = inv_remote_report_fill(&m->report);
    m->header = (struct report_header){inv_now_ns(), bytes};
    if (send_within(plan, &m->header, sizeof m->header, plan->root, answer_limit_ns) &&
        send_within(plan, &m->report, bytes, plan->root, answer_limit_ns))
        free(m);
}

void shim_report_gather(struct shim_report_plan *plan, MPI_Comm comm)
{
    plan->comm = comm;
    if (!plan->takes_part)
        return;
    if (plan->root == shim_world.rank)
        receive_reports(plan);
    else
        send_report(plan);
    free(plan->from);
    plan->from = NULL;
    plan->takes_part = false;
}
