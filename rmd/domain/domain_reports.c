/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * domain_reports.c - the reports of a domain's processes, of the living and the ended, one at a time
 * for a client.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"

#include <stdlib.h>

int rmd_domain_submit_report(struct rmd_domain *d, pid_t pid,
                             const struct inv_remote_report *remote, size_t bytes)
{
    struct rmd_report r;
    if (rmd_domain_slot(d, pid) < 0 || !rmd_report_from_remote(&r, remote, bytes, inv_now_ns()))
        return -1;
    rmd_debug("process %d brought the report of rank %d on %s", (int)pid, r.report.rank,
              r.report.host);
    rmd_reports_add(&d->shared->reports, &d->dead, &r);
    return 0;
}

struct rmd_report rmd_domain_report_of(struct rmd_domain *d, unsigned slot, uint64_t end_ns)
{
    const struct rmd_process *p = &d->procs[slot];
    const struct inv_report known = {.pid = p->pid,
                                     .alive = end_ns == 0,
                                     .owned_cores = p->owned,
                                     .start_ns = p->start_ns,
                                     .end_ns = end_ns,
                                     .owned_ns = p->owned_ns,
                                     .energy = d->shared->energy.state,
                                     .energy_uj = p->energy.energy_uj};
    return rmd_report_of(d->table, slot, &known);
}

unsigned rmd_domain_begin_reports(struct rmd_domain *d, struct rmd_report_cursor *t)
{
    *t = (struct rmd_report_cursor){.next = d->dead.forgotten,
                                    .end = d->dead.forgotten + d->dead.count};
    t->living = d->live ? calloc(d->live, sizeof *t->living) : NULL;
    for (unsigned s = 0; s < INV_MAX_SLOTS && t->living; s++)
        if (d->procs[s].used)
            t->living[t->nliving++] = (struct rmd_living){d->procs[s].pid, d->procs[s].start_ns};
    inv_assert(t->nliving <= d->live);
    if (d->table)
        rmd_domain_settle(d);
    rmd_energy_sample(&d->shared->energy);
    return d->dead.count + t->nliving;
}

/* The report of a process that lived at the time of the request.  It may have died since: then its
 * report is after `end`. */
static bool find_report(struct rmd_domain *d, const struct rmd_living *one, uint64_t end,
                        struct rmd_report *report)
{
    int slot = rmd_domain_slot(d, one->pid);
    if (slot >= 0 && d->procs[slot].start_ns == one->start_ns) {
        *report = rmd_domain_report_of(d, (unsigned)slot, 0);
        return true;
    }
    uint64_t first = d->dead.forgotten;
    for (uint64_t i = end > first ? end - first : 0; i < d->dead.count; i++) {
        const struct inv_report *r = &d->dead.items[i].report;
        if (r->pid != one->pid || r->start_ns != one->start_ns || r->node)
            continue;
        *report = rmd_report_copy(&d->dead.items[i]);
        return true;
    }
    return false;
}

bool rmd_domain_next_report(struct rmd_domain *d, struct rmd_report_cursor *t,
                            struct rmd_report *report)
{
    uint64_t first = d->dead.forgotten;
    if (t->next < first)
        t->next = first; /* the oldest reports have been dropped meanwhile */
    if (t->next < t->end && t->next - first < d->dead.count) {
        *report = rmd_report_copy(&d->dead.items[t->next - first]);
        return true;
    }
    t->next = t->end; /* else the domain is a new one of the user */
    for (; t->nth < t->nliving; t->nth++)
        if (find_report(d, &t->living[t->nth], t->end, report))
            return true;
    return false;
}

void rmd_report_cursor_advance(struct rmd_report_cursor *t)
{
    inv_assert(t->next < t->end || t->nth < t->nliving);
    if (t->next < t->end)
        t->next++;
    else
        t->nth++;
}

void rmd_report_cursor_free(struct rmd_report_cursor *t)
{
    free(t->living);
    *t = (struct rmd_report_cursor){0};
}
