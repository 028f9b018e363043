/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * remote_report.c - the remote report: of a process on another node than the `invade` that wants
 * it.
 *
 * `invade` cannot reach the rmd of another node, but MPI can.  At MPI_Finalize the process fills in
 * a remote report, as its own rmd would.  The MPI shim sends it to a rank on the node of `invade`
 * (mpi-shim/setup/report_gather.c), which submits it to its rmd.  `invade` asks that rmd at the end as ever.
 * All data are in the process's slot and record, so the rmd of its own node need not live.
 */
#define _GNU_SOURCE
#include "libinvasive/member/remote_report.h"
#include "libinvasive/base/now.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/member/manager.h"
#include "libinvasive/record/record.h"
#include "libinvasive/process/state.h"

#include <string.h>
#include <unistd.h>

static uint64_t load_number(const _Atomic uint64_t *number)
{
    return atomic_load_explicit((_Atomic uint64_t *)number, memory_order_relaxed);
}

/* The process has owned its present cores since rmd wrote settled_ns. */
static uint64_t owned_until(struct inv_slot *s, uint64_t now)
{
    uint64_t settled = load_number(&s->settled_ns);
    uint32_t cores = atomic_load_explicit(&s->owned_cores, memory_order_relaxed);
    return load_number(&s->owned_ns) + (settled && now > settled ? cores * (now - settled) : 0);
}

/* The same number in all processes that share a table: from the node and the rmd of the table. */
static uint64_t domain_number(void)
{
    return inv_node_id() +
           atomic_load_explicit(&inv_process.table->rmd_pid, memory_order_relaxed);
}

static void fill_report(struct inv_report *r, struct inv_slot *s)
{
    uint64_t now = inv_now_ns();
    *r = (struct inv_report){
        .pid = s->pid,
        .rank = s->rank,
        .size = s->size,
        .alive = 1,
        .owned_cores = atomic_load_explicit(&s->owned_cores, memory_order_relaxed),
        .start_ns = s->start_ns,
        .end_ns = now,
        .owned_ns = owned_until(s, now),
        .node = domain_number(),
        .node_cores = inv_process.ncores,
    };
    inv_report_count(r, &s->counters);
    memcpy(r->program, s->program, sizeof r->program);
    if (gethostname(r->host, sizeof r->host - 1))
        memset(r->host, 0, sizeof r->host);
}

size_t inv_remote_report_fill(struct inv_remote_report *p)
{
    struct inv_record *record = inv_own_record();
    p->request = inv_request_of(INV_SUBMIT_REPORT);
    fill_report(&p->report, inv_own_slot());
    if (record) {
        p->report.record_bytes = inv_record_bytes(record);
        memcpy(p->record, (void *)record, p->report.record_bytes);
    }
    return INV_REMOTE_REPORT_BYTES(p->report.record_bytes);
}

/* A time of another clock by ours; 0 ("not yet") stays 0. */
static uint64_t shift_time(uint64_t time, int64_t behind_ns)
{
    return time ? time + (uint64_t)behind_ns : 0;
}

/* Changes times, launch and job of a record to those of this node and process.  The record is a
 * copy, of unknown alignment. */
static void rebase_record(unsigned char *bytes, const struct inv_record *ours, int64_t behind_ns)
{
    static const size_t times[] = {
        offsetof(struct inv_record, from_ns),         offsetof(struct inv_record, until_ns),
        offsetof(struct inv_record, counted_ns),      offsetof(struct inv_record, published_ns),
        offsetof(struct inv_record, waiting_since_ns)};
    uint64_t number;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        memcpy(&number, bytes + times[i], sizeof number);
        number = shift_time(number, behind_ns);
        memcpy(bytes + times[i], &number, sizeof number);
    }
    number = load_number(&ours->launch);
    memcpy(bytes + offsetof(struct inv_record, launch), &number, sizeof number);
    number = load_number(&ours->job);
    memcpy(bytes + offsetof(struct inv_record, job), &number, sizeof number);
}

bool inv_remote_report_submit(struct inv_remote_report *p, size_t bytes, int64_t behind_ns)
{
    struct inv_record *ours = inv_own_record();
    if (!ours || bytes < INV_REMOTE_REPORT_BYTES(INV_RECORD_BYTES(0)) || bytes > sizeof *p ||
        bytes != INV_REMOTE_REPORT_BYTES(p->report.record_bytes))
        return false;
    p->report.start_ns = shift_time(p->report.start_ns, behind_ns);
    p->report.end_ns = shift_time(p->report.end_ns, behind_ns);
    rebase_record(p->record, ours, behind_ns);
    return inv_send_to_manager(&p->request, bytes);
}
