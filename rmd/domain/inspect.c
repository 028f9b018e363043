/* SPDX-License-Identifier: GPL-3.0-or-later */
/* inspect.c - functions by which files of other folders read a domain. */
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"

uid_t rmd_domain_uid(const struct rmd_domain *d) { return d->uid; }

const struct inv_topology *rmd_domain_topology(const struct rmd_domain *d) { return &d->topology; }

const struct rmd_domain_rules *rmd_domain_rules(const struct rmd_domain *d) { return &d->rules; }

struct rmd_domain_counts rmd_domain_counts(const struct rmd_domain *d)
{
    return (struct rmd_domain_counts){.live = d->live,
                                      .stopped = d->stopped,
                                      .granted = d->granted,
                                      .units_granted = d->units_granted,
                                      .moves = d->moves,
                                      .joins = d->joins,
                                      .leaves = d->leaves,
                                      .deaths = d->deaths,
                                      .decisions = d->decisions,
                                      .decision_ns = d->decision_ns};
}

unsigned rmd_domain_live(const struct rmd_domain *d) { return d->live; }

unsigned rmd_domain_granted(const struct rmd_domain *d) { return d->granted; }

bool rmd_domain_member(const struct rmd_domain *d, unsigned slot, struct rmd_member *member)
{
    const struct rmd_process *p = &d->procs[slot];
    if (p->used)
        *member = (struct rmd_member){.pid = p->pid,
                                      .pidfd = p->pidfd.fd,
                                      .rank = p->rank,
                                      .start_ticks = p->start_ticks,
                                      .owned = p->owned,
                                      .suspended = p->suspended,
                                      .priority = p->priority,
                                      .order = &p->order};
    return p->used;
}

const struct rmd_replaced *rmd_domain_replaced(const struct rmd_domain *d) { return d->replaced; }

struct inv_table *rmd_domain_table(const struct rmd_domain *d) { return d->table; }

int rmd_domain_table_fd(const struct rmd_domain *d) { return d->table ? d->table_fd : -1; }

enum rmd_grant rmd_domain_grant(const struct rmd_domain *d, unsigned core)
{
    return (enum rmd_grant)d->grant[core];
}

int rmd_domain_owner(const struct rmd_domain *d, unsigned core)
{
    return d->table ? d->owner[core] : -1;
}

bool rmd_domain_rests(const struct rmd_domain *d, unsigned core) { return d->resting[core]; }

int rmd_domain_holder(const struct rmd_domain *d, unsigned core, pid_t *tid)
{
    const struct inv_core *c = inv_core_at(d->table, core);
    /* relaxed, both: a hint, and any process may have written it */
    unsigned name = inv_word_holder(atomic_load_explicit(&c->word, memory_order_relaxed));
    if (name == INV_NOBODY || name > INV_MAX_SLOTS || !d->procs[name - 1].used)
        return -1;
    *tid = atomic_load_explicit(&c->holder_tid, memory_order_relaxed);
    return (int)name - 1;
}
