/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.c - the wait engine: check; spin for as long as that is better than a lend; then give the
 * core up and sleep on the doorbell.
 *
 * Spinning costs nothing while no other process wants the core, which the core's word shows.  When
 * one does, spinning is worth it only if the call site's history promises a wait that is shorter
 * than a lend.  With more processes than cores other ranks are runnable: the thread yields to them
 * a few times before it sleeps.  Every sleep has a timer, so that MPI makes progress for partners
 * that do not ring.  `invade --tune` changes how long a thread spins, and the timers (inv_tuned_spin,
 * inv_tuned_poll).
 */
#include "mpi-shim/wait/wait.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/futex.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/short_waits.h"
#include "mpi-shim/measure/site.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/ring.h"
#include "libinvasive/process.h"
#include "mpi-shim/dispatch/guard.h"

/* In microseconds.  WAKE: the cost of a lend in wake-ups; a wait that is likely to be shorter is
 * spun through.  LEND: the cost with cache misses on both sides, where the rank waits little, so
 * that there is little to lend.  SHORT: how long a site with long waits spins before it lends.
 * HOLD: the same as LEND where the rank holds its core in short waits (short_waits.h).  PATIENT: the
 * longest spin on a core that no other process wants.  YIELD: how long the thread yields, for each
 * rank of a core, before it sleeps.  MOVE: how long it tries to get another core when the owner
 * asks for this one.  LASTS: a report reads the CPU time of longer waits.  PREEMPTED: a lend that
 * takes longer has been interrupted by a borrower on the core. */
enum {
    LEND_US = 200,
    SHORT_US = 1,
    HOLD_US = 1000,
    WAKE_US = 30,
    PATIENT_US = 5000,
    YIELD_US = 200,
    MOVE_US = 10
};
enum { LASTS_US = 5, PREEMPTED_US = 20 };
/* In microseconds.  OTHERS: a yield that takes longer has let another thread run.  ENOUGH: after
 * this time without such a yield the thread sleeps. */
enum { OTHERS_US = 2, ENOUGH_US = 10 };
/* Slices of sleep.  FIRST: the first one.  OVERSUBSCRIBED: the first one with more processes than
 * cores, where each check takes some 20 us from a rank that computes.  LONG: the longest one where
 * a rank that does not ring may need progress of this one.  Where all ranks ring, 1/SLICE_PART of
 * the wait so far, up to LONGEST. */
#ifndef SHIM_LONG_SLICE_NS /* a test makes them so long that a ring which is lost shows */
#define SHIM_LONG_SLICE_NS INT64_C(1000000)
#endif
static const int64_t FIRST_SLICE_NS = 100000, OVERSUBSCRIBED_SLICE_NS = 500000,
                     LONG_SLICE_NS = SHIM_LONG_SLICE_NS,
                     LONGEST_SLICE_NS = 100 * SHIM_LONG_SLICE_NS;
/* In microseconds.  RUNG: how long to check after a ring, before the next sleep: what the ring is
 * for may take a moment to arrive.  RUNG_TOGETHER: the same in a collective, where all that is left
 * to come is on its way then. */
enum { SLICE_PART = 64, RUNG_US = 5, RUNG_TOGETHER_US = 50 };
/* In microseconds.  ARRIVED: how long to check after something has arrived, since more may come.
 * RING: the least time between two rings of the others for that. */
enum { ARRIVED_US = 50, RING_US = 100 };

/* Until when (ns) cores are held in short waits, by the first rank's decision; 0: they are lent. */
static uint64_t hold_until(void)
{
    const struct inv_slot *first = inv_slot_at(inv_process.table, shim_world.domain_rank[0].slot);
    uint32_t word = atomic_load_explicit(&first->short_waits, memory_order_relaxed);
    return word != 0 ? shim_short_waits_hold_until(word, inv_now_ns()) : 0;
}

void shim_short_waits_refresh(void)
{
    if (!inv_process.anonymous)
        atomic_store_explicit(&inv_waits.holds_until_ns, hold_until(), memory_order_relaxed);
}

/* How long a site spins on a core that another process wants: the cost of a lend if the wait is
 * likely to be over by then, else next to nothing; longer if cores are held in short waits. */
static uint64_t patience_ticks(const struct shim_site *site)
{
    uint64_t expects = shim_site_expects(site), hold = inv_tuned_spin(HOLD_US * shim_clock.us);
    if (expects <= hold && hold_until() != 0)
        return hold;
    uint64_t lend = inv_tuned_spin((shim_waits_little() ? LEND_US : WAKE_US) * shim_clock.us);
    return expects <= lend ? lend : SHORT_US * shim_clock.us;
}

/* The owner of the core asks for it while the thread spins: move to another core, if there is one,
 * rather than sleep.  Often that is one of the process's own cores, with an idle worker, which
 * gives it up when it sees that a thread waits. */
static bool move_to_other_core(void)
{
    uint64_t start = shim_ticks();
    int hold;
    atomic_fetch_add_explicit(&inv_waits.threads, 1, memory_order_relaxed);
    while ((hold = inv_hold_acquire()) == INV_HOLD_NONE &&
           shim_ticks() - start < MOVE_US * shim_clock.us)
        inv_cpu_relax();
    unsigned before = atomic_fetch_sub_explicit(&inv_waits.threads, 1, memory_order_relaxed);
    inv_assert(before > 0);
    if (hold == INV_HOLD_NONE)
        return false;
    int old = inv_hold_detach();
    inv_assert(hold >= 0 && inv_hold_is_valid(hold) && inv_hold == INV_HOLD_NONE);
    inv_hold_begin(hold); /* first: the next thread on the old core must not find this one there */
    inv_hold_release(old);
    return true;
}

bool shim_spin_on(const struct shim_site *site, uint64_t start, uint64_t idle)
{
    uint64_t now = shim_ticks(), spun = now - idle;
    if (now - start > LASTS_US * shim_clock.us)
        shim_site_stats_wait_lasts(start);
    enum inv_verdict verdict = inv_hold_poll();
    if (verdict == INV_GIVE)
        return move_to_other_core();
    return verdict != INV_LOST && spun <= inv_tuned_spin(PATIENT_US * shim_clock.us) &&
           (verdict != INV_WANTED || spun <= patience_ticks(site));
}

static bool spin_on_core(struct shim_wait *w, const struct shim_site *site, uint64_t start)
{
    do {
        for (int i = 0; i < 16; i++) {
            if (w->done(w))
                return true;
            inv_cpu_relax();
        }
        inv_triggers_test(INV_IN_MPI);
    } while (shim_spin_on(site, start, start));
    return false;
}

/* Only if another process can use the core.  While more threads hold tokens than there are cores,
 * this thread's token frees no core, and a sleep and its end cost more than yields. */
bool shim_lends_at_once(const struct shim_site *site)
{
    return inv_others_want(inv_process.table, inv_process.slot) &&
           (!inv_process.anonymous || !inv_token_overdrawn(inv_process.table)) &&
           shim_site_expects(site) > inv_tuned_spin(WAKE_US * shim_clock.us);
}

/* YIELD_US for each rank that shares the core, if the site's waits are mostly shorter than that: a
 * wait takes longer the more ranks have to run meanwhile, and with a sleep longer still. */
uint64_t shim_yield_ticks(const struct shim_site *site)
{
    uint64_t long_us = YIELD_US * shim_sharing();
    bool is_long = shim_site_expects(site) >= long_us * shim_clock.us;
    return inv_tuned_spin(shim_clock.us * (is_long ? YIELD_US : long_us));
}

/* The kernel puts a woken thread on an idle core, if there is one, else where others compute.  So a
 * core on which threads only wait must look idle to it. */
bool shim_yield_is_enough(uint64_t *shared_at)
{
    uint64_t before = shim_ticks();
    sched_yield();
    uint64_t now = shim_ticks();
    if (now - before > OTHERS_US * shim_clock.us)
        *shared_at = now;
    return now - *shared_at > ENOUGH_US * shim_clock.us;
}

/* Where the library yields in each check, the yield here shows only some of the threads that run on
 * this core meanwhile, so it does not end the spin. */
static bool spin_yielding(struct shim_wait *w, const struct shim_site *site, uint64_t start)
{
    uint64_t yielding = shim_yield_ticks(site), shared_at = start;
    bool enough;
    shim_site_stats_wait_lasts(start);
    do {
        if (shim_lends_at_once(site))
            break;
        for (int i = 0; i < 4; i++)
            if (w->done(w))
                return true;
        inv_triggers_test(INV_IN_MPI);
        enough = shim_yield_is_enough(&shared_at) && !shim_thread.mpi_yields;
    } while (!enough && shim_ticks() - start < yielding);
    return w->done(w);
}

/* Sets or clears the sleep flags.  The caller checks again before it sleeps. */
static void show_sleeping(struct shim_comm *c, bool sleeping)
{
    inv_assert(shim_world.me >= 0 && shim_world.me < shim_world.domain_ranks);
    inv_assert(!c || !c->line || (c->rank >= 0 && c->rank < c->size));
    /* release: partner is the acquire load in ring.c and arrival.c */
    atomic_store_explicit(&shim_world.domain_rank[shim_world.me].sleep_flag->sleeping, sleeping,
                          memory_order_release);
    if (c && c->line)
        atomic_store_explicit(&c->line[c->rank].sleeping, sleeping, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static void count_sleeper(const struct shim_sleep *s, int by)
{
    inv_assert(by == 1 || by == -1);
    inv_assert(!s->counted || (s->comm && s->comm->header));
    if (s->counted)
        atomic_fetch_add_explicit(&s->comm->header->sleeping, (uint32_t)by, memory_order_seq_cst);
}

void shim_sleep_begin(struct shim_sleep *s, struct shim_comm *comm, bool counted, uint64_t start)
{
    *s = (struct shim_sleep){.comm = comm,
                             .counted = counted && comm && comm->header,
                             .start = start,
                             .slice = inv_tuned_poll(inv_process.anonymous ? OVERSUBSCRIBED_SLICE_NS
                                                                           : FIRST_SLICE_NS)};
    shim_site_stats_wait_sleeps(start);
    shim_workload_lends();
    inv_wait_begin();
    count_sleeper(s, 1);
    s->seen = inv_bell_read();
    show_sleeping(comm, true);
}

uint64_t shim_sharing(void)
{
    return ((uint64_t)shim_world.domain_ranks + inv_process.ncores - 1) / inv_process.ncores;
}

/* A wait without rings is prolonged by at most LONG_SLICE_NS, or 1/64 of it. */
static int64_t longest_slice(const struct shim_sleep *s)
{
    int64_t part = (int64_t)(shim_ticks_to_ns(shim_ticks() - s->start) / SLICE_PART);
    if (shim_world.domain_ranks < shim_world.size || part < LONG_SLICE_NS)
        return inv_tuned_poll(LONG_SLICE_NS);
    return inv_tuned_poll(part < LONGEST_SLICE_NS ? part : LONGEST_SLICE_NS);
}

static int64_t next_slice(const struct shim_sleep *s)
{
    int64_t longest = longest_slice(s);
    return s->slice * 2 < longest && !s->steep ? s->slice * 2 : longest;
}

/* How long to check before the next sleep: longer the more ranks have to run meanwhile.  But not if
 * all cores are in use, or another process wants one: then the checks take time from the ranks that
 * this one waits for.  relaxed: a hint. */
static uint64_t check_ticks(uint64_t us)
{
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous &&
        (atomic_load_explicit(&t->free_tokens, memory_order_relaxed) <= 0 ||
         inv_others_want(t, inv_process.slot)))
        return RUNG_US * shim_clock.us;
    return us * shim_sharing() * shim_clock.us;
}

static void keep_checking(struct shim_sleep *s, uint64_t now, uint64_t ticks)
{
    s->check_until = now + ticks;
    s->shared_at = now;
}

/* After a ring the flag is set anew, and the slice after a new flag is short: a poster has no
 * fence, and may have read the flag just before it was set (ring.c).  A slice that ends early, by a
 * ring for the wait before or by a signal, does not count.  The bell is read once, since a ring
 * between two readings would be lost. */
bool shim_sleep_slice(struct shim_sleep *s)
{
    uint64_t before = shim_ticks();
    inv_assert(s->slice >= 0); /* a sleep without an end would make no progress */
    inv_wait_sleep(s->seen, s->slice);
    uint64_t now = shim_ticks();
    uint32_t bell = inv_bell_read();
    bool rung = bell != s->seen;
    bool early = (int64_t)shim_ticks_to_ns(now - before) < s->slice / 2;
    s->slice = rung || early ? inv_tuned_poll(FIRST_SLICE_NS) : next_slice(s);
    s->seen = bell;
    show_sleeping(s->comm, true);
    if (rung)
        keep_checking(s, now, check_ticks(s->counted ? RUNG_TOGETHER_US : RUNG_US));
    return rung;
}

void shim_sleep_end(struct shim_sleep *s)
{
    show_sleeping(s->comm, false);
    inv_wait_end();
    shim_workload_regained();
    shim_site_stats_wait_woke();
    count_sleeper(s, -1); /* last: ranks that wait for sleepers to be awake (arrival.c) see it */
}

bool shim_sleep_arrived(struct shim_sleep *s)
{
    uint64_t now = shim_ticks();
    keep_checking(s, now, check_ticks(ARRIVED_US));
    s->slice = inv_tuned_poll(FIRST_SLICE_NS);
    if (now - s->rang < RING_US * shim_clock.us)
        return false;
    s->rang = now;
    return true;
}

/* Checks until s->check_until.  With more processes than cores the thread yields between checks: a
 * rank that it waits for may have yet to run here.  Ends at `end`, since messages for other waits
 * may arrive for ever. */
static bool check_before_sleep(struct shim_wait *w, struct shim_sleep *s, uint64_t end)
{
    for (;;) {
        shim_thread.heard = false;
        if (w->done(w))
            return true;
        inv_triggers_test(INV_IN_MPI);
        if (shim_thread.heard && shim_sleep_arrived(s))
            shim_ring_all();
        uint64_t now = shim_ticks();
        if (now >= s->check_until || now >= end)
            return false;
        if (!inv_process.anonymous)
            inv_cpu_relax();
        else if (shim_yield_is_enough(&s->shared_at))
            return false;
    }
}

/* Lends the core.  Its borrower may preempt this thread before the sleep flag is set.  Then no rank
 * has rung for what came meanwhile, and one check may not be enough to complete it. */
static void begin_slices(struct shim_sleep *s, struct shim_wait *w, uint64_t wait_start)
{
    uint64_t before = shim_ticks();
    shim_sleep_begin(s, w->comm, w->at_arrival, wait_start);
    uint64_t now = shim_ticks();
    if (now - before > PREEMPTED_US * shim_clock.us)
        keep_checking(s, now, RUNG_US * shim_clock.us);
}

bool shim_wait_slices(struct shim_wait *w, uint64_t wait_start, uint64_t limit_ticks,
                      bool until_rung)
{
    uint64_t start = shim_ticks();
    inv_assert(w->done);
    struct shim_sleep sleep;
    bool done, rung = false;
    begin_slices(&sleep, w, wait_start);
    shim_thread.listening = true;
    sleep.steep = until_rung; /* a test of a streak, whose first tests have had the short slices */
    for (;;) {
        done = check_before_sleep(w, &sleep, start + limit_ticks);
        uint64_t waited = shim_ticks() - start;
        if (done || (rung && until_rung) || waited >= limit_ticks)
            break;
        int64_t left = (int64_t)shim_ticks_to_ns(limit_ticks - waited);
        if (sleep.slice > left)
            sleep.slice = left;
        rung = shim_sleep_slice(&sleep);
    }
    shim_thread.listening = false;
    shim_sleep_end(&sleep);
    return done;
}

void shim_wait_idle(struct shim_wait *w, const void *call_site)
{
    uint64_t start = shim_ticks();
    struct shim_site *site = shim_site(call_site);
    bool slept = false;
    bool holds_core = !inv_process.anonymous && inv_hold >= 0;
    if (!(holds_core ? spin_on_core(w, site, start) : spin_yielding(w, site, start))) {
        slept = true;
        shim_wait_slices(w, start, UINT64_MAX / 2, false);
    }
    uint64_t end = shim_ticks();
    shim_site_learn(site, start, end);
    shim_workload_waited(start, end, slept);
    shim_short_waits_refresh();
}
