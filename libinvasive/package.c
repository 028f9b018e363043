/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * package.c - the report of a process on another node than the `invade` that wants it.
 *
 * A node's rmd is out of that `invade`'s reach, but MPI is not: at MPI_Finalize the process packs
 * what rmd would say of it, the MPI shim carries it to a rank on that node
 * (mpi-shim/report_gather.c), and that one hands it to its rmd, whom `invade` asks at the end as
 * ever.  All of it is in our slot and our record, so it makes no difference whether the rmd of this
 * node lives.
 */
#define _GNU_SOURCE
#include "process.h"
#include "launch.h"
#include "protocol.h"

#include <string.h>
#include <unistd.h>

static uint64_t get(const _Atomic uint64_t *number)
{
    return atomic_load_explicit((_Atomic uint64_t *)number, memory_order_relaxed);
}

/* What we own now we have owned since rmd wrote it down. */
static uint64_t owned_until(struct inv_slot *s, uint64_t now)
{
    uint64_t settled = get(&s->settled_ns);
    uint32_t cores = atomic_load_explicit(&s->owned_cores, memory_order_relaxed);
    return get(&s->owned_ns) + (settled && now > settled ? cores * (now - settled) : 0);
}

/* Who shares our table, on any node: this node and the rmd that made the table. */
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

size_t inv_package_fill(struct inv_package *p)
{
    struct inv_record *record =
        atomic_load_explicit(&inv_process.record, memory_order_acquire);
    p->request = inv_request_of(INV_DEPOSIT);
    fill_report(&p->report, inv_slot_at(inv_process.table, inv_process.slot));
    if (record) {
        p->report.record_bytes = inv_record_bytes(record);
        memcpy(p->record, (void *)record, p->report.record_bytes);
    }
    return INV_PACKAGE_BYTES(p->report.record_bytes);
}

/* Another clock's time by ours; 0 stays what it is, "not yet". */
static uint64_t shifted(uint64_t time, int64_t behind_ns)
{
    return time ? time + (uint64_t)behind_ns : 0;
}

/* Times, launch and job of a record as they would be here.  It is a copy, of unknown alignment. */
static void adopt_record(unsigned char *bytes, const struct inv_record *ours, int64_t behind_ns)
{
    static const size_t times[] = {
        offsetof(struct inv_record, from_ns),         offsetof(struct inv_record, until_ns),
        offsetof(struct inv_record, counted_ns),      offsetof(struct inv_record, published_ns),
        offsetof(struct inv_record, waiting_since_ns)};
    uint64_t number;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        memcpy(&number, bytes + times[i], sizeof number);
        number = shifted(number, behind_ns);
        memcpy(bytes + times[i], &number, sizeof number);
    }
    number = get(&ours->launch);
    memcpy(bytes + offsetof(struct inv_record, launch), &number, sizeof number);
    number = get(&ours->job);
    memcpy(bytes + offsetof(struct inv_record, job), &number, sizeof number);
}

bool inv_package_deliver(struct inv_package *p, size_t bytes, int64_t behind_ns)
{
    struct inv_record *ours = atomic_load_explicit(&inv_process.record, memory_order_acquire);
    if (!ours || bytes < INV_PACKAGE_BYTES(INV_RECORD_BYTES(0)) || bytes > sizeof *p ||
        bytes != INV_PACKAGE_BYTES(p->report.record_bytes))
        return false;
    p->report.start_ns = shifted(p->report.start_ns, behind_ns);
    p->report.end_ns = shifted(p->report.end_ns, behind_ns);
    adopt_record(p->record, ours, behind_ns);
    return inv_tell_manager(&p->request, bytes);
}
