/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parked.c - workers with nothing to do, parked where lenders find them.
 *
 * A parked worker shows one bit in its process's slot.  The thread that clears the bit has taken
 * the worker and must wake it: a lender of any process, with a core to borrow, or a thread of this
 * process, with a hold to hand over.  The waker pins the worker to the core while it still sleeps,
 * so that it wakes there: on the core that is just being given up a wake costs 2 us, across cores
 * 60.
 */
#define _GNU_SOURCE
#include "libinvasive/hold/parked.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/hold/hold.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/table/core.h"

static struct {
    /* Indices that no thread of this process uses now.  Writers: entry_alloc and entry_free */
    _Atomic uint64_t free;
    /* The hold that a thread of this process hands to the worker that it wakes, and how many threads
     * are about to hand one over.  Another process may wake the worker at the same time (rmd, when it
     * reaps a dead process).  So the worker looks here until no thread is about to: a hold is never
     * left behind.  Writers: wake_one, and the worker that takes it */
    _Atomic int handed[INV_PARKED_MAX];
    _Atomic unsigned callers[INV_PARKED_MAX];
} entries = {.free = ~UINT64_C(0), .handed = {[0 ... INV_PARKED_MAX - 1] = INV_HOLD_NONE}};

/* An entry for the caller: the one that it had last if no other thread uses it.  Threads of the process that wake
 * workers begin with the first entry, and lenders of other processes with the last one (inv_parked_take), so both
 * find the same few workers again and again, whose data is in a core's cache. */
static int entry_alloc(void)
{
    static __thread unsigned last __attribute__((tls_model("initial-exec")));
    uint64_t set = atomic_load_explicit(&entries.free, memory_order_relaxed);
    while (set) {
        int i = (set >> last & 1) != 0 ? (int)last : __builtin_ctzll(set);
        inv_assert(i >= 0 && i < INV_PARKED_MAX && (set >> i & 1));
        if (atomic_compare_exchange_weak_explicit(&entries.free, &set, set & ~(UINT64_C(1) << i),
                                                  memory_order_acquire, memory_order_relaxed)) {
            last = (unsigned)i;
            return i;
        }
    }
    return -1;
}

static void entry_free(int i)
{
    uint64_t before =
        atomic_fetch_or_explicit(&entries.free, UINT64_C(1) << i, memory_order_release);
    inv_assert(!(before >> i & 1)); /* the caller had it */
}

/* Take the bit back.  False when a waker has it already and the bell will ring. */
static bool withdraw_bit(struct inv_slot *slot, int i)
{
    uint64_t bit = UINT64_C(1) << i;
    return atomic_fetch_and_explicit(&slot->parked, ~bit, memory_order_seq_cst) & bit;
}

/* The hold that a thread of this process hands to parked worker i; INV_HOLD_NONE: none does. */
static int take_handed(int i)
{
    for (;;) {
        /* seq_cst, and callers before handed: partner is inv_parked_wake */
        bool coming = atomic_load(&entries.callers[i]) > 0;
        int hold = atomic_exchange(&entries.handed[i], INV_HOLD_NONE);
        inv_assert(inv_hold_is_valid(hold));
        if (hold != INV_HOLD_NONE || !coming)
            return hold;
        inv_cpu_relax();
    }
}

/* The hold of a woken worker: one that was handed over, or the core that its waker has named. */
static int hold_of_woken(struct inv_parked *entry, int i)
{
    inv_assert(inv_hold == INV_HOLD_NONE);
    int hold = take_handed(i);
    inv_thread_was_asleep();
    int core = atomic_load_explicit(&entry->core, memory_order_relaxed);
    if (core >= (int)inv_process.ncores)
        core = INV_NO_CORE; /* another process has written this */
    if (hold != INV_HOLD_NONE) {
        inv_hold_begin(hold);
        return hold;
    }
    if (core >= 0 && !inv_process.anonymous &&
        inv_core_borrow(inv_process.table, (unsigned)core, inv_process.slot)) {
        inv_tool_arrived(core);
        inv_hold_begin(core); /* pins where the waker has not: rmd does not */
        return core;
    }
    if (inv_want_get(inv_process.table, inv_process.slot) &&
        (hold = inv_hold_acquire()) != INV_HOLD_NONE)
        inv_hold_begin(hold);
    if (hold == INV_HOLD_NONE && core >= 0)
        inv_thread_woken_on(core);
    if (hold == INV_HOLD_NONE && inv_process.anonymous)
        inv_token_offer(inv_process.table); /* the waker has told no other process */
    return hold;
}

bool inv_worker_park(_Atomic uint32_t *word, uint32_t expected)
{
    inv_assert(inv_hold == INV_HOLD_NONE);
    int i = entry_alloc();
    if (i < 0)
        return false;
    struct inv_slot *slot = inv_own_slot();
    struct inv_parked *entry = &slot->parked_workers[i];
    uint32_t seen = atomic_load_explicit(&entry->bell, memory_order_relaxed);
    inv_assert(!(atomic_load_explicit(&entries.free, memory_order_relaxed) >> i & 1));
    atomic_store_explicit(&entry->tid, inv_own_tid(), memory_order_relaxed);
    atomic_store_explicit(&entry->core, INV_NO_CORE, memory_order_relaxed);
    /* seq_cst, and the looks after it: partner is inv_core_offer, which frees a core first and
     * looks for parked workers then.  One of the two sees the other. */
    atomic_fetch_or_explicit(&slot->parked, UINT64_C(1) << i, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);

    int hold = INV_HOLD_NONE;
    bool leave = atomic_load_explicit(word, memory_order_relaxed) != expected;
    if (!leave && inv_want_get(inv_process.table, inv_process.slot)) {
        leave = (hold = inv_hold_acquire()) != INV_HOLD_NONE;
        if (!leave)
            inv_hold_reclaim_owned(); /* a core that was free when we asked may be another process's
                                         now */
    }
    while (!leave && atomic_load_explicit(&entry->bell, memory_order_acquire) == seen)
        inv_futex_wait(&entry->bell, seen, -1, true);
    if (withdraw_bit(slot, i)) {
        entry_free(i);
        inv_thread_was_asleep(); /* a caller that came too late last time may have pinned us */
        if (hold != INV_HOLD_NONE)
            inv_hold_begin(hold);
        return true;
    }
    while (atomic_load_explicit(&entry->bell, memory_order_acquire) == seen)
        inv_futex_wait(&entry->bell, seen, -1, true);
    int second = hold_of_woken(entry, i);
    entry_free(i);
    if (hold == INV_HOLD_NONE)
        return true;
    /* The worker had acquired a hold itself when a waker gave it another one.  It keeps the first
     * and hands the other on. */
    inv_assert(inv_hold == second);
    if (second != INV_HOLD_NONE) {
        inv_hold_detach();
        if (!inv_parked_wake(second))
            inv_hold_release(second);
    }
    inv_hold_begin(hold);
    return true;
}

/* Takes worker i, if it is parked, and gives it the hold.  The worker wakes on the core. */
static bool wake_one(int i, int hold, int core)
{
    inv_assert(i >= 0 && i < INV_PARKED_MAX && inv_hold_is_valid(hold));
    inv_assert(hold < 0 || core == hold);
    /* A worker does not wait for a caller that brings no hold.  It may wake on the caller's core
     * and run before the caller has come out of the system call that wakes it. */
    if (hold != INV_HOLD_NONE)
        atomic_fetch_add(&entries.callers[i], 1);
    bool taken = withdraw_bit(inv_own_slot(), i);
    if (taken) {
        /* A caller without a hold leaves NONE here, as take_handed does.  Meanwhile another waker
         * may have woken the worker, and the worker may have parked again and been handed a hold. */
        if (hold != INV_HOLD_NONE)
            atomic_store(&entries.handed[i], hold);
        inv_parked_ring(inv_process.table, inv_process.slot, i, core);
    }
    if (hold != INV_HOLD_NONE) {
        unsigned before = atomic_fetch_sub(&entries.callers[i], 1);
        inv_assert(before > 0);
    }
    return taken;
}

static bool wake_any(int hold, int core)
{
    /* seq_cst: partner is inv_worker_park, which sets its bit and then looks at the word that the
     * caller may have raised before (gomp_workers_trim) */
    uint64_t bits = atomic_load(&inv_own_slot()->parked);
    for (; bits; bits &= bits - 1)
        if (wake_one(__builtin_ctzll(bits), hold, core))
            return true;
    return false;
}

bool inv_parked_wake(int hold)
{
    return wake_any(hold, hold >= 0 ? hold : INV_NO_CORE);
}

bool inv_parked_wake_unheld(int core)
{
    return wake_any(INV_HOLD_NONE, core);
}

unsigned inv_parked_count(void)
{
    return (unsigned)__builtin_popcountll(
        atomic_load_explicit(&inv_own_slot()->parked, memory_order_relaxed));
}

void inv_parked_forget(void)
{
    atomic_store(&entries.free, ~UINT64_C(0));
    for (int i = 0; i < INV_PARKED_MAX; i++) {
        atomic_store(&entries.handed[i], INV_HOLD_NONE);
        atomic_store(&entries.callers[i], 0);
    }
}
