/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.c - a thread that waits for another process gives its core away meanwhile.
 *
 * The waiting thread names the core that it will need again (its home), lends it and sleeps on the
 * doorbell of its slot.  The process that causes what it waits for rings (inv_ring).  The ringer
 * takes the home core on the sleeper's behalf, or asks its holder for it, so that the sleeper wakes
 * on a core that is its own.  A timer bounds every sleep; a holder that does not give the core back
 * within the reclaim bound is evicted.
 *
 * If background threads compute meanwhile, an own core is not lent, but kept: the waiting thread
 * stays pinned to it, and the kernel can run a background thread there.  All waiting threads
 * together keep one core only, since the process's other cores are for its teams.
 */
#define _GNU_SOURCE
#include "libinvasive/hold/wait.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/hold/evicted.h"
#include "libinvasive/hold/hold.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/hold/suspended.h"
#include "libinvasive/hold/want.h"
#include "libinvasive/process/background.h"
#include "libinvasive/process/holdings.h"
#include "libinvasive/process/openmp.h"
#include "libinvasive/process/sched_latency.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/table/core.h"

enum { REGAIN_SPIN_NS = 5000, OWN_WORKER_NAP_NS = 50000, EARLY_NS = 90000, EARLY_PART = 16 };

struct inv_waits inv_waits = {.kept_hold = INV_HOLD_NONE};

static bool held_by_us(int core)
{
    return core >= 0 && inv_word_holder(inv_core_word(core)) == inv_own_name();
}

static bool owned_by_us(int core)
{
    return core >= 0 && inv_word_owner(inv_core_word(core)) == inv_own_name();
}

/* The home core of this thread's wait; INV_NO_CORE when another thread's is in the slot. */
static __thread int home = INV_NO_CORE;
/* Did this thread hold a core when it began to wait? */
static __thread bool had_hold;

/* Does this thread keep the hold that is kept, as far as it knows? */
static __thread bool keeps;
static __thread struct inv_background looks;
/* The lent core that this thread has asked for to keep it, and when; INV_NO_CORE: none. */
static __thread int asked_core = INV_NO_CORE;
static __thread uint64_t asked_ns;

/* The thread that this one has evicted from a core that it needed after a wait. */
static __thread struct inv_evicted evicted_thread;

void inv_waits_forget(void)
{
    atomic_store(&inv_waits.threads, 0);
    atomic_store(&inv_waits.holds_until_ns, 0);
    atomic_store(&inv_waits.kept_hold, INV_HOLD_NONE);
    atomic_store(&inv_waits.background_threads, 0);
    home = asked_core = INV_NO_CORE;
    had_hold = keeps = false;
    evicted_thread.tid = 0;
}

bool inv_evicted_waits(void) { return evicted_thread.tid != 0; }

uint32_t inv_bell_read(void)
{
    return atomic_load_explicit(&inv_own_slot()->bell, memory_order_seq_cst);
}

/* Make `core` the home of this thread, unless another thread's is in the slot. */
static void take_home(int core)
{
    int nobody = INV_NO_CORE;
    inv_assert(core >= 0 && home == INV_NO_CORE);
    if (atomic_load_explicit(&inv_own_slot()->home, memory_order_relaxed) != INV_NO_CORE)
        return;
    int tid = inv_pinning_enabled() ? inv_own_tid() : 0;
    atomic_store_explicit(&inv_own_slot()->home_tid, tid, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&inv_own_slot()->home, &nobody, core))
        home = core;
}

/* Should a hold be kept rather than lent?  Not if the process's own teams can use it. */
static bool worth_keeping(void)
{
    return atomic_load_explicit(&inv_waits.background_threads, memory_order_relaxed) > 0 &&
           !inv_want_get(inv_process.table, inv_process.slot);
}

/* Keeps the caller's hold, if no process asks for it and the process keeps no other one. */
static bool keep_hold(void)
{
    int none = INV_HOLD_NONE;
    inv_assert(!keeps && inv_hold_is_valid(inv_hold));
    if (!worth_keeping() || !(inv_hold == INV_HOLD_TOKEN || inv_hold_is_owned()))
        return false;
    enum inv_verdict verdict = inv_hold_poll();
    if (verdict == INV_GIVE || verdict == INV_LOST)
        return false;
    /* seq_cst: partner is take_kept; nothing but the hold goes with it */
    keeps = atomic_compare_exchange_strong(&inv_waits.kept_hold, &none, inv_hold);
    return keeps;
}

/* The caller's hold is no kept one any more.  False: another thread has taken it, and the caller
 * has none. */
static bool stop_keeping(void)
{
    int hold = inv_hold;
    inv_assert(keeps && hold != INV_HOLD_NONE);
    keeps = false;
    if (atomic_compare_exchange_strong(&inv_waits.kept_hold, &hold, INV_HOLD_NONE))
        return true;
    inv_hold = INV_HOLD_NONE;
    inv_thread_was_asleep();
    return false;
}

/* Takes the kept hold for the calling thread, which needs one.  INV_HOLD_NONE: there is none. */
static int take_kept(void)
{
    int hold = atomic_load_explicit(&inv_waits.kept_hold, memory_order_relaxed);
    if (hold == INV_HOLD_NONE || !atomic_compare_exchange_strong(&inv_waits.kept_hold, &hold, INV_HOLD_NONE))
        return INV_HOLD_NONE;
    return hold < 0 || held_by_us(hold) ? hold : INV_HOLD_NONE;
}

/* Gives a detached hold up; the thread that the caller evicted may compute there. */
static void release_hold(int hold)
{
    inv_hold_release(hold);
    inv_evicted_admit(&evicted_thread, hold);
}

static void lend_hold(void)
{
    int hold = inv_hold_detach();
    /* The home is an own core, which can be reclaimed, if the caller holds a borrowed one, too. */
    if (hold >= 0) {
        int own = owned_by_us(hold) ? hold : inv_first_owned_core();
        take_home(own != INV_NO_CORE ? own : hold);
    }
    release_hold(hold);
}

static void start_waiting(void)
{
    atomic_fetch_add_explicit(&inv_waits.threads, 1, memory_order_relaxed);
}

static void stop_waiting(void)
{
    unsigned before = atomic_fetch_sub_explicit(&inv_waits.threads, 1, memory_order_relaxed);
    inv_assert(before > 0);
}

void inv_wait_begin(void)
{
    inv_assert(home == INV_NO_CORE && !keeps); /* the thread's last wait is over */
    had_hold = inv_hold != INV_HOLD_NONE;
    if (!had_hold)
        return;
    start_waiting();
    inv_background_begin(&looks);
    asked_core = INV_NO_CORE;
    inv_want_if_work(); /* or the core would be offered to our own idle workers */
    if (!keep_hold())
        lend_hold();
}

static bool sleep_on_bell(uint32_t seen, int64_t timeout_ns)
{
    struct inv_slot *slot = inv_own_slot();
    /* A ringer has taken the core for us, but there was nothing for us: give it on. */
    if (home != INV_NO_CORE && inv_core_claim(inv_process.table, (unsigned)home, inv_process.slot))
        inv_hold_release(home);
    /* seq_cst: partner is inv_ring, which bumps the bell and then looks for sleepers. */
    atomic_fetch_add_explicit(&slot->sleepers, 1, memory_order_seq_cst);
    inv_futex_wait(&slot->bell, seen, timeout_ns, true);
    atomic_fetch_sub_explicit(&slot->sleepers, 1, memory_order_relaxed);
    return atomic_load_explicit(&slot->bell, memory_order_seq_cst) != seen;
}

static void start_keeping(void);

/* Decides anew whether the thread's hold is lent or kept, by whether background threads compute. */
static void reconsider_keeping(void)
{
    bool kept = atomic_load_explicit(&inv_waits.kept_hold, memory_order_relaxed) != INV_HOLD_NONE;
    int found = inv_background_count(&looks, kept);
    if (found != INV_BACKGROUND_UNKNOWN)
        atomic_store_explicit(&inv_waits.background_threads, found, memory_order_relaxed);
    if (!keeps && worth_keeping())
        start_keeping();
    else if (keeps && stop_keeping() && !keep_hold())
        lend_hold();
}

bool inv_wait_sleep(uint32_t seen, int64_t timeout_ns)
{
    if (had_hold)
        reconsider_keeping();
    return sleep_on_bell(seen, timeout_ns);
}

/* A core that this process owns, the home core first; INV_NO_CORE when it owns none. */
static int owned_core(void)
{
    if (owned_by_us(home))
        return home;
    for (unsigned core = 0; core < inv_process.ncores; core++)
        if (owned_by_us((int)core) && !held_by_us((int)core))
            return (int)core;
    return INV_NO_CORE;
}

/* Change the core that ringers and lenders give to this sleeping thread. */
static void change_home(int core)
{
    if (core == home)
        return;
    if (home == INV_NO_CORE) {
        take_home(core);
        return;
    }
    struct inv_table *t = inv_process.table;
    int old = home;
    inv_assert(old >= 0 && core != old);
    home = core;
    atomic_store(&inv_own_slot()->home, core);
    if (old != INV_NO_CORE && inv_core_forgo(t, (unsigned)old, inv_process.slot))
        inv_core_offer(t, (unsigned)old, inv_process.slot);
}

/* Takes an own core that is free; INV_HOLD_NONE: none is. */
static int take_free_owned(void)
{
    for (unsigned core = 0; core < inv_process.ncores; core++)
        if (owned_by_us((int)core) && inv_word_holder(inv_core_word((int)core)) == INV_NOBODY &&
            inv_core_reclaim(inv_process.table, core, inv_process.slot) == INV_RECLAIM_GOT) {
            inv_tool_arrived((int)core);
            return (int)core;
        }
    return INV_HOLD_NONE;
}

/* Which core a thread that needs one takes. */
enum cores {
    ANY_FREE, /* the first free one: the thread comes to scheduling points, where it can give it
                 back */
    OWNED     /* one of the process's own, if it has one that none of its threads holds */
};

/* Tries once to get a core: the one that was handed to the thread, `core`, any free one. */
static int try_hold(int core, enum cores which)
{
    struct inv_table *t = inv_process.table;
    if (home != INV_NO_CORE && inv_core_claim(t, (unsigned)home, inv_process.slot)) {
        inv_tool_arrived(home);
        return home;
    }
    if (core != INV_NO_CORE && !held_by_us(core) &&
        inv_core_reclaim(t, (unsigned)core, inv_process.slot) == INV_RECLAIM_GOT) {
        inv_tool_arrived(core);
        return core;
    }
    int hold = take_kept();
    if (hold != INV_HOLD_NONE)
        return hold;
    return which == OWNED && core != INV_NO_CORE && !held_by_us(core) ? take_free_owned()
                                                                      : inv_hold_acquire();
}

/* How long (ns) to sleep until a core comes.  Another process that hands the core over rings the
 * bell.  An idle worker of this process gives its core up when it sees that a thread waits, and
 * rings no bell: so the sleep is short if the process holds a core. */
static int64_t nap_ns(uint64_t left)
{
    for (unsigned core = 0; core < inv_process.ncores; core++)
        if (held_by_us((int)core))
            return left < OWN_WORKER_NAP_NS ? (int64_t)left : OWN_WORKER_NAP_NS;
    return (int64_t)left;
}

/* A thread that will evict a borrower wakes up this long (ns) before the reclaim bound: timers and
 * wake-ups come late by an unknown time.  Shorter than the slice that the thread asks for
 * (sched_latency.h), so that its slice is not over at the bound. */
static uint64_t early_ns(uint64_t bound)
{
    return bound / EARLY_PART < EARLY_NS ? bound / EARLY_PART : EARLY_NS;
}

static uint64_t reclaim_bound_ns(void)
{
    return inv_reclaim_bound_ns(inv_process.table);
}

/* Takes an own core from its borrower after the reclaim bound. */
static bool evict_from(int core)
{
    unsigned evicted;
    if (!inv_core_evict(inv_process.table, (unsigned)core, inv_process.slot, &evicted))
        return false;
    inv_evicted_note(&evicted_thread, core, evicted);
    return true;
}

/* Asks for an own core and waits until it comes; evicts the borrower at the reclaim bound. */
static int await_hold(enum cores which, uint64_t start, struct inv_sched_latency *latency)
{
    uint64_t bound = reclaim_bound_ns();
    for (;;) {
        uint32_t seen = inv_bell_read();
        int core = owned_core();
        uint64_t slept = core == INV_NO_CORE ? bound : bound - early_ns(bound);
        if (core != INV_NO_CORE)
            change_home(core); /* before we ask: the process that gives it back looks there */
        int hold = try_hold(core, which);
        if (hold != INV_HOLD_NONE)
            return hold;
        uint64_t waited = inv_now_ns() - start;
        if (waited < REGAIN_SPIN_NS)
            inv_cpu_relax();
        else if (waited < slept) {
            inv_sched_latency_lower(latency);
            sleep_on_bell(seen, nap_ns(slept - waited));
        } else if (waited < bound)
            inv_cpu_relax();
        else if (core == INV_NO_CORE || held_by_us(core))
            /* Owns nothing; or another thread of ours computes there, which may wait for the
             * caller in a loop of its own. */
            return INV_HOLD_NONE;
        else if (evict_from(core)) {
            inv_tool_arrived(core);
            return core;
        }
    }
}

/* The same.  The thread counts as a sleeper all the time, also while it spins, so that the core is
 * handed to it, and not to a parked worker that has no use for it. */
static int regain_hold(enum cores which, uint64_t start)
{
    struct inv_sched_latency latency = {.changed = false};
    atomic_fetch_add_explicit(&inv_own_slot()->sleepers, 1, memory_order_seq_cst);
    int hold = await_hold(which, start, &latency);
    atomic_fetch_sub_explicit(&inv_own_slot()->sleepers, 1, memory_order_relaxed);
    inv_sched_latency_restore(&latency);
    return hold;
}

/* The thread was a sleeper with a home.  It holds a core now and has no home any more. */
static void leave_home(int hold)
{
    inv_assert(inv_hold_is_valid(hold));
    if (home == hold && home != INV_NO_CORE) {
        home = INV_NO_CORE;
        atomic_store(&inv_own_slot()->home, INV_NO_CORE);
    } else if (home != INV_NO_CORE)
        change_home(INV_NO_CORE);
    inv_assert(home == INV_NO_CORE);
}

/* Asks for an own core, to keep it; its borrower gives it to our home.  A borrower that has not done
 * so by the bound is evicted: it may be ready to run and get no time, where unheld threads compute. */
static bool ask_or_evict(int core)
{
    struct inv_table *t = inv_process.table;
    uint64_t now = inv_now_ns();
    if (home == core && inv_core_claim(t, (unsigned)core, inv_process.slot))
        return true;
    bool asked = asked_core == core && inv_word_reclaim(inv_core_word(core));
    enum inv_reclaim answer = inv_core_reclaim(t, (unsigned)core, inv_process.slot);
    if (answer != INV_RECLAIM_ASKED)
        return answer == INV_RECLAIM_GOT;
    if (!asked) {
        asked_core = core;
        asked_ns = now;
    }
    return now - asked_ns >= reclaim_bound_ns() && evict_from(core);
}

/* Gets a lent hold back in order to keep it: at once, when its borrower gives it up, or at the
 * reclaim bound. */
static void start_keeping(void)
{
    int core = owned_core(), hold = INV_HOLD_NONE;
    if (atomic_load_explicit(&inv_waits.kept_hold, memory_order_relaxed) != INV_HOLD_NONE)
        return;
    if (inv_process.anonymous)
        hold = inv_hold_acquire();
    else if (core != INV_NO_CORE) {
        change_home(core); /* before we ask: the process that gives it back looks there */
        if (ask_or_evict(core)) {
            asked_core = INV_NO_CORE;
            inv_tool_arrived(core);
            hold = core;
        }
    }
    if (hold == INV_HOLD_NONE)
        return;
    inv_assert(!keeps && inv_hold == INV_HOLD_NONE);
    leave_home(hold);
    inv_evicted_remove(&evicted_thread, hold);
    inv_thread_was_asleep();
    inv_hold_begin(hold);
    if (!keep_hold())
        lend_hold();
}

int inv_first_hold(uint64_t limit_ns)
{
    int hold;
    do
        hold = regain_hold(ANY_FREE, inv_now_ns());
    while (hold == INV_HOLD_NONE && inv_now_ns() < limit_ns);
    leave_home(hold);
    return hold;
}

static void account_reclaim(uint64_t start)
{
    struct inv_counters *c = &inv_own_slot()->counters;
    uint64_t took = inv_now_ns() - start;
    atomic_fetch_add_explicit(&c->reclaim_wait_ns, took, memory_order_relaxed);
    uint64_t most = atomic_load_explicit(&c->reclaim_wait_max_ns, memory_order_relaxed);
    while (took > most && !atomic_compare_exchange_weak_explicit(
                              &c->reclaim_wait_max_ns, &most, took, memory_order_relaxed,
                              memory_order_relaxed))
        ;
}

/* The caller, which waits and holds nothing, has a hold again, and waits no more. */
static void begin_hold(enum cores which)
{
    inv_assert(inv_hold == INV_HOLD_NONE && !keeps);
    if (inv_process.anonymous) {
        stop_waiting();
        inv_token_force(inv_process.table, inv_process.slot);
        inv_tool_arrived(INV_HOLD_TOKEN);
        inv_hold_begin(INV_HOLD_TOKEN);
        inv_assigned_core_follow();
        return;
    }
    int hold = home;
    if (home == INV_NO_CORE ||
        !inv_core_claim(inv_process.table, (unsigned)home, inv_process.slot)) {
        uint64_t start = inv_now_ns();
        hold = regain_hold(which, start);
        if (hold == INV_HOLD_NONE && owned_core() == INV_NO_CORE)
            hold = inv_hold_take_only_token();
        account_reclaim(start);
    } else
        inv_tool_arrived(home);
    /* Only now: until here idle workers give their cores up when they see it. */
    stop_waiting();
    leave_home(hold);
    inv_evicted_remove(&evicted_thread, hold);
    inv_thread_was_asleep();
    if (hold != INV_HOLD_NONE)
        inv_hold_begin(hold);
    else if (owned_core() == INV_NO_CORE || !inv_go_on_unheld())
        inv_thread_unpin(); /* runs where the kernel puts it */
}

void inv_wait_end(void)
{
    inv_suspended_wait();
    if (!had_hold)
        return;
    had_hold = false;
    if (keeps && stop_keeping() && inv_hold_poll() != INV_LOST) {
        stop_waiting();
        return;
    }
    if (inv_hold != INV_HOLD_NONE) /* kept, and lost meanwhile */
        inv_hold_release(inv_hold_detach());
    begin_hold(ANY_FREE);
}

bool inv_wait_elsewhere(void)
{
    int hold = inv_hold;
    if (hold == INV_HOLD_NONE || inv_hold_is_lent || had_hold)
        return false;
    inv_assert(home == INV_NO_CORE && !keeps);
    inv_want_if_work(); /* as in inv_wait_begin */
    inv_thread_let_go(); /* first: the thread that gets the core runs there at once */
    release_hold(inv_hold_detach());
    inv_hold = hold;
    inv_hold_is_lent = true;
    return true;
}

void inv_wait_elsewhere_end(void)
{
    inv_suspended_wait();
    inv_hold_detach();
    start_waiting();
    begin_hold(OWNED); /* it may compute for long outside OpenMP and MPI, and would be evicted */
}

void inv_ring_slot(unsigned slot)
{
    inv_ring(inv_process.table, slot);
}
