/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * suspend.c - jobs that are suspended (rmctl suspend): their processes own no core, hold none, and
 * their threads wait (libinvasive/hold/suspended.h).
 *
 * A suspended process gives nothing up by itself.  rmd takes its cores and tokens, as from a
 * process that a signal has stopped (check.c), and sends the threads that run the signal in whose
 * handler they wait.  A thread that sleeps gets no signal, which might end its system call with an
 * error.  So rmd looks again, soon at first and seldom later, whether such a thread runs.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/hold/suspended.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/domain/order.h"
#include "rmd/domain/state.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum {
    FIRST_NS = 1000000, /* pause after the first look: cores are to be free within 10 ms */
    /* The number of looks that follow each other soon, and read the state of each thread: processor
     * times are those of the last tick. */
    EARLY_LOOKS = 30,
    LAST_NS = 50000000, /* the longest pause: a thread that ignores the suspension is seen as late */
    COST_PART = 50, /* later the processor time of a look is at most this part of the time until the next one */
    RUNS_PART = 20, /* a process computes if its threads took this part of the time since the last look */
};

static bool is_in_job(const struct rmd_domain *d, unsigned slot, unsigned of)
{
    const struct rmd_process *p = &d->procs[slot], *other = &d->procs[of];
    return p->used && (slot == of || (other->launch && p->launch == other->launch));
}

static void publish_suspension(struct rmd_domain *d, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    /* release: partner is inv_suspended_wait, which goes on when it reads 0 */
    atomic_store_explicit(&s->suspended, d->procs[slot].suspended ? d->suspension.looks : 0,
                          memory_order_release);
    if (!d->procs[slot].suspended)
        inv_futex_wake(&s->suspended, INT_MAX, true);
}

/* --- looks */

/* Sends threads that compute the signal.  Returns whether there are such threads. */
static bool stop_threads(struct rmd_domain *d, unsigned slot, uint64_t elapsed)
{
    struct rmd_process *p = &d->procs[slot];
    uint64_t ran = rmd_process_ran(p->pid), delta = ran > p->ran_ns ? ran - p->ran_ns : 0;
    bool early = d->suspension.early > 0;
    p->ran_ns = ran;
    p->computes = false;
    if (!early && delta * RUNS_PART < elapsed)
        return false;
    /* relaxed: no more than a signal depends on it */
    bool waits = atomic_load_explicit(&inv_slot_at(d->table, slot)->waits_on_signal, memory_order_relaxed);
    p->computes = rmd_signal_running(p->pid, p->pidfd.fd, waits ? INV_SUSPENDED_SIGNAL : 0) > 0;
    return p->computes;
}

/* Returns whether a job is suspended. */
static bool enforce_suspensions(struct rmd_domain *d)
{
    uint64_t now = inv_now_ns(), elapsed = now - d->suspension.looked_ns;
    bool any = false, computing = false;
    d->suspension.looks += 1 + (d->suspension.looks == UINT32_MAX);
    d->suspension.looked_ns = now;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        if (!d->procs[s].used || !d->procs[s].suspended)
            continue;
        any = true;
        publish_suspension(d, s);
        computing |= stop_threads(d, s, elapsed);
        if (d->procs[s].stopped)
            rmd_domain_lend_held(d, s);
    }
    if (computing) /* it may have been about to offer a core */
        rmd_domain_rescue(d);
    return any;
}

/* Looks, and sets the timer for the next look, if a job is suspended. */
static void watch_suspended(struct rmd_domain *d)
{
    struct rmd_suspension *u = &d->suspension;
    uint64_t ran = inv_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!enforce_suspensions(d) || u->timer.fd < 0)
        return;
    uint64_t rest = (inv_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran) * COST_PART;
    bool costly = !u->early && rest > u->pause_ns;
    rmd_ring_at(&u->timer, inv_now_ns() + (costly ? rest : u->pause_ns));
    if (u->early)
        u->early--;
    else
        u->pause_ns = 2 * u->pause_ns < LAST_NS ? 2 * u->pause_ns : LAST_NS;
}

static void timer_expired(struct rmd_source *timer, uint32_t events)
{
    struct rmd_domain *d = (void *)((char *)timer - offsetof(struct rmd_domain, suspension.timer));
    (void)events;
    if (rmd_timer_rang(timer) && d->table)
        watch_suspended(d);
}

/* Begins to look at the processes, if a job is suspended. */
static void begin_enforcing(struct rmd_domain *d)
{
    struct rmd_suspension *u = &d->suspension;
    if (u->timer.fd < 0 && rmd_timer_open(&u->timer, timer_expired))
        rmd_log(RMD_WARNING, "threads of suspended jobs may compute: no timer: %s", strerror(errno));
    u->pause_ns = FIRST_NS;
    u->early = EARLY_LOOKS;
    watch_suspended(d);
}

/* --- suspending and resuming */

/* Threads of the process that are pinned to a core which it does not own now may run on the cores
 * that it owns. */
static void move_threads(struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    struct inv_cpus own;
    inv_cpus_clear(&own);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] == (int)slot && d->topology.os_cpu[c] >= 0)
            inv_cpus_add(&own, (size_t)d->topology.os_cpu[c]);
    if (!d->topology.emulated && inv_cpus_count(&own))
        rmd_affinity_rebind(p->pid, p->pidfd.fd, &own);
}

static void resume_threads(struct rmd_domain *d, const bool *resumed)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (resumed[s])
            move_threads(d, s);
    rmd_domain_confined(d); /* what they know of their affinity is wrong */
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (resumed[s])
            publish_suspension(d, s);
}

unsigned rmd_domain_suspend(struct rmd_domain *d, unsigned slot, bool suspended)
{
    bool job[INV_MAX_SLOTS] = {false};
    unsigned count = 0;
    inv_assert(d->procs[slot].used);
    rmd_domain_mend_head(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        job[s] = is_in_job(d, s, slot);
        count += job[s];
    }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        if (job[s] && !suspended)
            rmd_order_yield_pins(d, &d->procs[s]);
        if (job[s])
            d->procs[s].suspended = suspended;
    }
    rmd_state_save(d);
    if (suspended) {
        begin_enforcing(d); /* first: what has no owner and no holder is another process's at once */
        rmd_domain_check_stopped(d);
        rmd_domain_redistribute(d, true);
    } else {
        rmd_domain_redistribute(d, true);
        rmd_domain_check_stopped(d);
        resume_threads(d, job);
    }
    rmd_state_save(d);
    return count;
}

bool rmd_domain_suspension_settled(struct rmd_domain *d, unsigned slot, unsigned *computing)
{
    bool holds = false;
    *computing = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        *computing += is_in_job(d, s, slot) && d->procs[s].computes;
    for (unsigned c = 0; rmd_domain_owns_cores(d) && c < d->topology.ncores; c++) {
        /* relaxed: looked at again and again */
        inv_word w = atomic_load_explicit(&inv_core_at(d->table, c)->word, memory_order_relaxed);
        unsigned holder = inv_word_holder(w) - 1;
        holds |= inv_word_holder(w) != INV_NOBODY && holder < INV_MAX_SLOTS && is_in_job(d, holder, slot);
    }
    return !holds && !*computing;
}

void rmd_suspension_joined(struct rmd_domain *d, unsigned slot)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS && !d->procs[slot].suspended; s++)
        d->procs[slot].suspended = s != slot && is_in_job(d, s, slot) && d->procs[s].suspended;
    if (!d->procs[slot].suspended)
        return;
    begin_enforcing(d);
    rmd_domain_check_stopped(d);
}

void rmd_suspension_taken_over(struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && !d->procs[s].suspended)
            publish_suspension(d, s); /* the former rmd may have been killed before */
    begin_enforcing(d);
}

void rmd_suspension_close(struct rmd_domain *d)
{
    rmd_timer_close(&d->suspension.timer);
}
