/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * gather.c - reports of ranks on other nodes travel home over MPI (invade --report).
 *
 * The home rank is the first one on the node of the `invade` that wants the report.  In the last
 * finalize, after all have come, it asks one rank of another table after the other: an empty
 * message, to which the rank answers at once with the time by its clock, and then with its report
 * (libinvasive/remote_report.c).  Half of the round trip bounds the error between the two clocks.
 *
 * Whoever is late is not reported, and nobody waits for it: what came before in MPI_Finalize
 * was a barrier, so that this happens only to a rank that dies in these milliseconds.
 */
#define _GNU_SOURCE
#include "shim.h"
#include "account.h"
#include "protocol.h"

#include <stdlib.h>

static const uint64_t answer_limit_ns = 2000000000, /* of one rank */
    limit_ns = 10000000000, limit_for_each_ns = 20000000; /* of all, and more for each */

struct hello {
    uint64_t now_ns, bytes; /* by its clock; of the report that follows */
};

static struct {
    MPI_Comm comm; /* the realm's of all ranks */
    int home;   /* world rank; -1: nothing to do */
    int *from;  /* on that rank: who is elsewhere */
    unsigned count; /* of them; known to all */
} plan = {.home = -1};

/* What a rank sends.  Where a request is left in it, it stays. */
struct parcel {
    struct hello hello;
    struct inv_remote_report report;
};

static bool elsewhere(const struct shim_whereabouts *rank, const struct shim_whereabouts *home)
{
    return rank->recorded && rank->domain != home->domain;
}

void shim_gather_plan(const struct shim_whereabouts *all)
{
    int home = 0, size = shim_world.size;
    while (home < size && !(all[home].recorded && all[home].reporter_here))
        home++;
    if (home == size)
        return;
    plan.count = 0;
    for (int r = 0; r < size; r++)
        plan.count += elsewhere(&all[r], &all[home]);
    if (home == shim_world.rank && plan.count) {
        plan.from = malloc(plan.count * sizeof *plan.from);
        unsigned n = 0;
        for (int r = 0; plan.from && r < size; r++)
            if (elsewhere(&all[r], &all[home]))
                plan.from[n++] = r;
    }
    if (plan.from || elsewhere(&all[shim_world.rank], &all[home]))
        plan.home = home;
}

static bool take(void *to, size_t bytes, int from, uint64_t within_ns)
{
    MPI_Request request;
    return shim_pmpi.Irecv(to, (int)bytes, MPI_BYTE, from, SHIM_TAG_REPORT, plan.comm,
                           &request) == MPI_SUCCESS &&
           shim_complete_all(1, &request, within_ns);
}

static bool give(const void *what, size_t bytes, int to, uint64_t within_ns)
{
    MPI_Request request;
    return shim_pmpi.Isend(what, (int)bytes, MPI_BYTE, to, SHIM_TAG_REPORT, plan.comm,
                           &request) == MPI_SUCCESS &&
           shim_complete_all(1, &request, within_ns);
}

static bool fetch(struct parcel *p, int rank)
{
    uint64_t asked = inv_now_ns();
    if (!give(NULL, 0, rank, answer_limit_ns) ||
        !take(&p->hello, sizeof p->hello, rank, answer_limit_ns))
        return false;
    uint64_t heard = inv_now_ns();
    if (p->hello.bytes > sizeof p->report ||
        !take(&p->report, (size_t)p->hello.bytes, rank, answer_limit_ns))
        return false;
    inv_remote_report_submit(&p->report, (size_t)p->hello.bytes,
                             (int64_t)(asked + (heard - asked) / 2 - p->hello.now_ns));
    return true; /* the others wait to be asked also when our rmd is gone */
}

static uint64_t patience_ns(void) { return limit_ns + plan.count * limit_for_each_ns; }

static void fetch_all(void)
{
    uint64_t limit = inv_now_ns() + patience_ns();
    struct parcel *p = NULL;
    for (unsigned i = 0; i < plan.count && inv_now_ns() < limit; i++) {
        if (!p && !(p = malloc(sizeof *p)))
            return;
        if (!fetch(p, plan.from[i]))
            p = NULL;
    }
    free(p);
}

static void be_fetched(void)
{
    struct parcel *p = malloc(sizeof *p);
    if (!p || !take(NULL, 0, plan.home, patience_ns()))
        return;
    size_t bytes = inv_remote_report_fill(&p->report);
    p->hello = (struct hello){inv_now_ns(), bytes};
    if (give(&p->hello, sizeof p->hello, plan.home, answer_limit_ns) &&
        give(&p->report, bytes, plan.home, answer_limit_ns))
        free(p);
}

void shim_gather(MPI_Comm comm)
{
    plan.comm = comm;
    if (plan.home < 0)
        return;
    if (plan.home == shim_world.rank)
        fetch_all();
    else
        be_fetched();
    free(plan.from);
    plan.from = NULL;
    plan.home = -1;
}
