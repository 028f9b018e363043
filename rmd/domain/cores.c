/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cores.c - cores that come to a domain and leave it.  Their words are written in anonymous mode,
 * too: a process that lets a child or a thread run anywhere reads there which cores these are.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/domain/state.h"

void rmd_domain_admit(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_GRANTED)
        return;
    d->grant[core] = RMD_GRANTED;
    rmd_state_save_grant(d, core); /* before a process can have it */
    d->changed = true;
    d->granted++;
    d->units_granted += rmd_units_first(&d->units, core);
    inv_assert(d->granted <= d->topology.ncores && d->units_granted <= d->units.count);
    inv_assert(!d->table || d->owner[core] == RMD_NO_OWNER);
    if (d->table)
        inv_core_admit(d->table, core);
}

bool rmd_domain_withdraw(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_GRANTED) {
        d->grant[core] = RMD_REVOKING;
        d->changed = true;
        inv_assert(d->granted > 0 && d->units_granted >= rmd_units_first(&d->units, core));
        d->granted--;
        d->units_granted -= rmd_units_first(&d->units, core);
        d->owner[core] = RMD_NO_OWNER;
        d->resting[core] = false;
        if (d->table)
            inv_core_withdraw(d->table, core);
        rmd_state_save_grant(d, core); /* no process can take it now; before another user gets it */
    }
    return rmd_domain_has_left(d, core);
}

bool rmd_domain_has_left(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_REVOKING &&
        (!rmd_domain_owns_cores(d) || inv_core_is_free(d->table, core)))
        d->grant[core] = RMD_NOT_GRANTED;
    rmd_state_save_grant(d, core);
    return d->grant[core] == RMD_NOT_GRANTED;
}

void rmd_domain_expel(struct rmd_domain *d, unsigned core)
{
    if (d->table)
        inv_core_expel(d->table, core);
    d->grant[core] = RMD_NOT_GRANTED;
    rmd_state_save_grant(d, core);
}

/* Tokens are only counted: if there are fewer now, processes that have too many give them up. */
static void adjust_tokens(struct rmd_domain *d)
{
    atomic_fetch_add(&d->table->free_tokens, (int32_t)d->granted - (int32_t)d->tokens);
    bool more = d->granted > d->tokens;
    d->tokens = d->granted;
    rmd_state_save(d);
    if (more)
        inv_token_offer(d->table);
}

/* Offers granted cores without an owner to processes that want one, and have parked. */
static void offer_unowned_cores(struct rmd_domain *d)
{
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] == RMD_GRANTED && d->owner[c] == RMD_NO_OWNER)
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
}

void rmd_domain_share(struct rmd_domain *d)
{
    bool changed = d->changed;
    d->changed = false;
    if (!d->table || !changed)
        return;
    rmd_domain_mend_head(d);
    if (d->table->mode == INV_MODE_ANONYMOUS) {
        adjust_tokens(d);
        rmd_domain_redistribute(d, true);
    } else {
        rmd_domain_redistribute(d, true);
        offer_unowned_cores(d);
    }
}

void rmd_domain_set_paced(struct rmd_domain *d, bool paced) { d->paced = paced; }

void rmd_domain_set_due(struct rmd_domain *d, unsigned units) { d->due = units; }

void rmd_domain_reconfigured(struct rmd_domain *d)
{
    if (!d->table)
        return;
    rmd_domain_mend_head(d);
    /* a process that reads it meanwhile sees the old or the new value */
    __atomic_store_n(&d->table->reclaim_bound_us, d->rules.reclaim_bound_us, __ATOMIC_RELAXED);
    d->header->reclaim_bound_us = d->rules.reclaim_bound_us;
    rmd_state_head(d);
    rmd_blocked_reconsider(d);
    rmd_domain_redistribute(d, true);
}

void rmd_domain_confined(struct rmd_domain *d)
{
    /* before the word of a newly granted core is written: its readers read this number */
    if (d->table)
        atomic_fetch_add(&d->table->confined_seq, 1);
}
