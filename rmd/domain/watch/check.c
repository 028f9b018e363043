/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * check.c - periodic checks, for which there is no event: processes that have overwritten rmd's
 * part of the table, and processes that are stopped (SIGSTOP, ^Z) and cannot give up cores.  Those of a
 * suspended job (suspend.c) are treated alike.
 *
 * rmd lends the cores and tokens of a stopped process until it continues.  The process still owns
 * its cores, and asks for them as for any that it has lent.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/domain/replaced.h"
#include "rmd/domain/state.h"

#include <stdlib.h>

/* --- what is not as rmd has left it */

void rmd_domain_log_repaired(struct rmd_domain *d, const char *what)
{
    uint64_t now = inv_now_ns();
    if (d->repaired_ns && now - d->repaired_ns < 1000000000u)
        return;
    d->repaired_ns = now;
    rmd_error("a process has overwritten %s; restoring it", what);
}

static unsigned repair_slot(struct rmd_domain *d, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    const struct rmd_process *p = &d->procs[slot];
    uint32_t state = p->used ? INV_SLOT_LIVE : INV_SLOT_FREE;
    if (atomic_load(&s->state) == state && (!p->used || s->pid == p->pid))
        return 0;
    if (p->used) {
        s->pid = p->pid;
        s->rank = p->rank;
        s->size = p->size;
        s->start_ns = p->start_ns;
    } else {
        inv_want_set(d->table, slot, false);
    }
    atomic_store(&s->state, state);
    return 1;
}

static unsigned repair_words(struct rmd_domain *d)
{
    uint64_t members[INV_SLOT_WORDS] = {0};
    unsigned wrong = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        members[s / 64] |= (uint64_t)d->procs[s].used << s % 64;
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        inv_assert(d->owner[c] < INV_MAX_SLOTS && (d->owner[c] < 0 || d->procs[d->owner[c]].used));
        bool reserved = d->grant[c] != RMD_GRANTED || d->resting[c];
        unsigned name = reserved ? INV_ELSEWHERE : (unsigned)(d->owner[c] + 1);
        if (!inv_core_repair(d->table, c, name, members))
            continue;
        wrong++;
        if (rmd_domain_owns_cores(d))
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
    }
    return wrong;
}

unsigned rmd_domain_repair(struct rmd_domain *d)
{
    unsigned wrong = 0;
    rmd_domain_mend_head(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        wrong += repair_slot(d, s);
    return wrong + repair_words(d);
}

/* --- tokens */

/* The process's tokens by its slot, limited to a valid number. */
static int tokens_of(struct rmd_domain *d, unsigned slot)
{
    int n = atomic_load(&inv_slot_at(d->table, slot)->tokens);
    return n < 0 ? 0 : n > INV_MAX_CORES ? INV_MAX_CORES : n;
}

bool rmd_domain_lend_tokens(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    int more = tokens_of(d, slot) - p->loan;
    if (!more)
        return false;
    p->loan += more;
    inv_assert(p->loan >= 0 && p->loan <= INV_MAX_CORES);
    atomic_fetch_add(&d->table->free_tokens, more);
    inv_token_offer(d->table);
    return true;
}

void rmd_domain_end_token_loan(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    inv_assert(p->used && p->loan >= 0);
    atomic_fetch_sub(&d->table->free_tokens, p->loan);
    p->loan = 0;
}

/* The number of free tokens that the table should have, if no process is taking or returning
 * one. */
static int free_tokens(struct rmd_domain *d)
{
    int n = (int)d->tokens;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            n += d->procs[s].loan - tokens_of(d, s);
    return n;
}

int rmd_domain_surplus(struct rmd_domain *d)
{
    return (int)((int64_t)atomic_load(&d->table->free_tokens) - free_tokens(d));
}

/* Has the table more free tokens than there are tokens, or fewer than its processes could ever
 * take? */
static bool has_impossible_tokens(struct rmd_domain *d)
{
    int n = atomic_load(&d->table->free_tokens);
    return n > (int)d->tokens + INV_MAX_CORES || n < -INV_MAX_CORES * INV_PARKED_MAX;
}

/* The least surplus of a few readings: processes take and return tokens while rmd adds them up. */
static int least_surplus(struct rmd_domain *d)
{
    int least = rmd_domain_surplus(d);
    for (unsigned looks = 1; looks < 4 && least; looks++) {
        int now = rmd_domain_surplus(d);
        if (llabs(now) < llabs(least))
            least = now;
    }
    return least;
}

/* A process that takes or returns a token changes two numbers, one after the other.  A difference
 * that is the same at several checks is an error: a process has died between the two changes, or
 * was between them during a takeover (takeover.c).  A stopped process can stay between them, so rmd
 * does not judge while one is stopped.  A wrong correction shows as the opposite difference, and is
 * corrected too. */
static int token_error(struct rmd_domain *d)
{
    int now = least_surplus(d);
    d->alike = now && now == d->amiss && !d->stopped ? d->alike + 1 : 0;
    d->amiss = now;
    return d->alike < 4 ? 0 : now;
}

static unsigned repair_tokens(struct rmd_domain *d)
{
    if (has_impossible_tokens(d)) {
        atomic_store(&d->table->free_tokens, free_tokens(d));
        return 1;
    }
    int amiss = token_error(d);
    if (amiss) {
        rmd_log(RMD_INFO, "%d tokens too many have been free", amiss);
        atomic_fetch_sub(&d->table->free_tokens, amiss);
        inv_token_offer(d->table);
    }
    return 0;
}

static void repair_domain(struct rmd_domain *d)
{
    unsigned wrong = rmd_domain_repair(d);
    wrong += repair_tokens(d);
    if (wrong)
        rmd_domain_log_repaired(d, "owners or names in the core table");
}

/* --- the stopped */

/* Lends the cores that the process holds, and cancels its reclaims: a core that is reserved for a
 * stopped process would be idle.  inv_rescue asks again when the process continues. */
static void lend_cores(struct rmd_domain *d, unsigned slot)
{
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        bool held = inv_core_seize(d->table, c, slot);
        if (inv_core_reclaim_cancel(d->table, c, slot) || held)
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
    }
}

void rmd_domain_lend_held(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    if (inv_want_get(d->table, slot)) {
        p->wanted = true;
        rmd_state_save(d); /* first: threads of it that have parked rely on it */
        inv_want_set(d->table, slot, false); /* else lenders would wake it in vain */
    }
    if (d->table->mode == INV_MODE_PINNED)
        lend_cores(d, slot);
    if (rmd_domain_lend_tokens(d, slot))
        rmd_state_save(d);
}

static void end_loan(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    rmd_domain_end_token_loan(d, slot);
    if (p->wanted)
        inv_want_set(d->table, slot, true);
    p->wanted = false;
}

/* Returns whether the process has been stopped, or goes on, since the last call. */
static bool check_stopped(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    struct rmd_procstat now;
    if (!rmd_procstat(p->pid, &now))
        return false; /* dead: the next event */
    bool stopped = now.state == 'T' || p->suspended;
    d->stopped += (unsigned)stopped - (unsigned)p->stopped;
    inv_assert(d->stopped <= d->live);
    bool was = p->stopped;
    p->stopped = stopped;
    if (stopped && !was)
        rmd_state_save(d);
    if (stopped)
        rmd_domain_lend_held(d, slot);
    else if (was)
        end_loan(d, slot);
    if (stopped != was) /* when the next rmd would know it, too, or finds it out */
        rmd_log(RMD_INFO, p->suspended ? "process %d is suspended: others may use its cores"
                          : stopped    ? "process %d has been stopped: others may use its cores"
                                       : "process %d goes on", (int)p->pid);
    return stopped != was;
}

/* A process that was stopped may have been about to offer a core, or to wake a thread.  A process
 * that continues asks for its cores again.  rmd reads every thread of the domain once for all of
 * them, and charges the user for it.  If rmd is killed before, the next one does it
 * (takeover.c). */
void rmd_domain_rescue(struct rmd_domain *d)
{
    uint64_t begun = rmd_rate_limit_clock();
    inv_rescue(d->table);
    rmd_state_save(d);
    rmd_rate_limit_charge(&d->shared->rates, d->uid, rmd_rate_limit_clock() - begun);
}

bool rmd_domain_check_stopped(struct rmd_domain *d)
{
    bool changed = false;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            changed |= check_stopped(d, s);
    if (changed)
        rmd_domain_rescue(d);
    return changed;
}

bool rmd_domain_check(struct rmd_domain *d)
{
    if (!d->table || !d->live)
        return false;
    bool idle = d->stopped == d->live;
    rmd_replaced_check(d);
    if (!d->table || !d->live)
        return false;
    repair_domain(d);
    rmd_domain_check_stopped(d);
    return idle != (d->stopped == d->live);
}
