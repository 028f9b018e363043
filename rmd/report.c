/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c - the final account of a process, copied from its slot before that is reused. */
#define _GNU_SOURCE
#include "report.h"

#include <stdlib.h>
#include <string.h>

enum { REPORTS_MAX = 4096 };

static uint64_t get(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed); /* statistics: no partner */
}

struct inv_report rmd_report_of(struct rmd_domain *d, unsigned slot, uint64_t end_ns)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    struct rmd_process *p = &d->procs[slot];
    struct inv_counters *c = &s->counters;
    struct inv_report r = {
        .pid = p->pid,
        .rank = s->rank,
        .size = s->size,
        .alive = end_ns == 0,
        .owned_cores = p->owned,
        .start_ns = p->start_ns,
        .end_ns = end_ns,
        .owned_ns = p->owned_ns,
        .lends = get(&c->lends),
        .borrows = get(&c->borrows),
        .reclaims = get(&c->reclaims),
        .evictions = get(&c->evictions),
        .reclaim_wait_ns = get(&c->reclaim_wait_ns),
        .reclaim_wait_max_ns = get(&c->reclaim_wait_max_ns),
        .borrowed_ns = get(&c->borrowed_ns),
        .lent_used_ns = get(&c->lent_used_ns),
        .useful_ns = get(&c->useful_ns),
        .wait_ns = get(&c->wait_ns),
        .waits = get(&c->waits),
    };
    memcpy(r.program, s->program, sizeof r.program);
    r.program[sizeof r.program - 1] = '\0';
    return r;
}

void rmd_reports_add(struct rmd_reports *reports, const struct inv_report *report)
{
    if (reports->count == REPORTS_MAX) {
        memmove(reports->items, reports->items + 1, (REPORTS_MAX - 1) * sizeof *reports->items);
        reports->count--;
    }
    if (reports->count == reports->room) {
        unsigned room = reports->room ? reports->room * 2 : 16;
        struct inv_report *more = realloc(reports->items, room * sizeof *more);
        if (!more)
            return; /* a report less */
        reports->items = more;
        reports->room = room;
    }
    reports->items[reports->count++] = *report;
}
