/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.c - see hold.h.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "hold.h"
#include "cores.h"
#include "free_workers.h"
#include "ready.h"
#include "sleepers.h"
#include "work_source.h"
#include "unheld.h"
#include "watchdog.h"
#include <libinvasive/base/futex.h>

bool gomp_leaves_work (void)
{
    if (gomp_work_sources.implicit->publish())
        gomp_want_cores();
    bool work = gomp_work_waiting();
    if (work && !inv_process.anonymous)
        gomp_call_cores(); /* until now the process may have held a core for each implicit task */
    return work;
}

void gomp_hold_yield (void)
{
    if (!inv_managed())
        return;
    gomp_work_sources.implicit->publish();
    gomp_hold_handover(inv_hold_detach()); /* also if it is lost, or there is none */
    inv_assert(inv_hold == INV_HOLD_NONE);
}

static struct gomp_waiter waiter_for_core (void)
{
    inv_assert(inv_hold == INV_HOLD_NONE);
    return (struct gomp_waiter){
        .tid = inv_own_tid(), .core = inv_thread_core(), .needs_hold = true, .hold = INV_HOLD_NONE};
}

/* Queues for a core for timeout_ns (negative: without limit); then the caller computes without a
 * hold. */
static void acquire_within (int64_t timeout_ns)
{
    if (!inv_managed() || gomp_unheld_end())
        return;
    struct gomp_waiter w = waiter_for_core();
    gomp_ready_push(&w);
    gomp_want_cores();
    gomp_waiter_sleep_for(&w, timeout_ns);
}

void gomp_hold_acquire (void)
{
    acquire_within(-1);
}

void gomp_hold_forgo (void)
{
    gomp_unheld_begin();
    gomp_want_cores();
}

bool gomp_hold_ticket_first (void)
{
    int n = atomic_load_explicit(&gomp_workers.tickets_first, memory_order_relaxed);
    return n > 0 && atomic_compare_exchange_strong(&gomp_workers.tickets_first, &n, n - 1);
}

/* Unstarted implicit tasks and contexts, which the caller has published, go before ready threads,
 * since these may, like the caller, wait for such a task. */
static void hand_over_tickets_first (int hold)
{
    if (gomp_work_sources.implicit->waits() && inv_hold_check(hold) != INV_LOST) {
        atomic_fetch_add_explicit(&gomp_workers.tickets_first, 1, memory_order_relaxed);
        if (!gomp_hold_place_on_work(hold))
            gomp_hold_handover(hold);
    } else
        gomp_hold_handover(hold);
}

/* The caller, which is detached from the hold and waits, passes it on, and queues for timeout_ns as in acquire_within.
 * The caller is in the queue before a ready thread wakes: that one may run at once, in the caller's place, and would have
 * no thread to pass the core on to when it waits itself.  (If it called sched_yield then, the kernel would run it less
 * for milliseconds.) */
static void pass_on_and_queue (int hold, int64_t timeout_ns)
{
    gomp_work_sources.implicit->publish();
    bool ready_first = !gomp_work_sources.implicit->waits() && inv_hold_check(hold) == INV_KEEP;
    struct gomp_waiter *next = ready_first ? gomp_ready_next(hold) : NULL;
    if (!next) { /* or the core is asked back */
        hand_over_tickets_first(hold);
        acquire_within(timeout_ns);
        return;
    }
    struct gomp_waiter w = waiter_for_core();
    gomp_ready_push(&w);
    gomp_want_cores();
    gomp_waiter_wake(next, hold);
    gomp_waiter_sleep_for(&w, timeout_ns);
}

void gomp_hold_pause (void)
{
    if (inv_managed() && gomp_holds_core() && gomp_work_waiting())
        pass_on_and_queue(inv_hold_detach(), -1);
    else
        inv_kernel_yield();
}

/* --- a thread that waits in a loop of tests of MPI.  It may hold a lock of the program, so it
 * waits for a core for a limited time only */

static bool way_wanted (void)
{
    return gomp_unheld_self || gomp_threads_queued() || gomp_work_sources.explicit->waits();
}

static bool let_others_go_first (uint64_t limit_ns)
{
    if (!inv_managed() || !(gomp_holds_core() || gomp_unheld_self))
        return true;
    if (!gomp_threads_queued() && !gomp_work_sources.explicit->waits())
        return inv_hold != INV_HOLD_NONE;
    if (inv_hold != INV_HOLD_NONE)
        pass_on_and_queue(inv_hold_detach(), (int64_t)limit_ns);
    else {
        gomp_unheld_end();
        acquire_within((int64_t)limit_ns);
    }
    return inv_hold != INV_HOLD_NONE;
}

static int idle_threads (void)
{
    return gomp_thread()->ts.level > 0 ? -1 : (int)gomp_free_workers_now() + gomp_watchdogs_now();
}

static bool yield_to_own (void)
{
    return gomp_work_sources.implicit->yield();
}

const struct inv_give_way gomp_give_way = {way_wanted, let_others_go_first, gomp_hold_forgo, idle_threads,
                                           yield_to_own};

void gomp_unlock_wake (int *addr, int count)
{
    enum { PATIENCE_NS = 1000000 };
    gomp_unpark(addr, count);
    if (__builtin_expect(inv_polls_until != 0, 0) && inv_polls() && inv_hold != INV_HOLD_NONE &&
        inv_managed() && gomp_threads_queued())
        let_others_go_first(PATIENCE_NS);
}
