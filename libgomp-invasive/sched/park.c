/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * park.c - see park.h.
 */
#include "park.h"
#include "free_workers.h"
#include "hold.h"
#include "process.h"
#include "sleepers.h"
#include "work_source.h"
#include "threads.h"
#include "unheld.h"
#include "watchdog.h"
#include <libinvasive/hold/pull.h>

/* The caller, about to sleep, may wait for implicit tasks that have not started, for which the
 * system refuses a thread.  Ends the program if there is no other worker to run them, and no
 * watchdog to notice that. */
static void check_starved (void)
{
    if (gomp_refused_ever() && gomp_work_sources.implicit->unstarted() && gomp_free_workers_now() == 0 &&
        !gomp_progress_start())
        gomp_fatal_starved();
}

/* Does the caller hold a core, or is it an unheld thread?  Other threads of the program, which may
 * begin regions too, compute without either. */
static bool needs_hold (void)
{
    if (!inv_managed())
        return false;
    bool is_unheld = gomp_unheld_self != NULL;
    return gomp_unheld_end() || is_unheld;
}

/* The only thread that may test MPI requests sleeps in slices, until it is woken.  What it waits for may be
 * a task that one of its tests makes ready. */
static void test_in_sleep (struct gomp_waiter *w)
{
    uint64_t start = inv_now_ns();
    while (inv_triggers_need_me()) {
        if (gomp_waiter_rest(w, inv_triggers_slice(inv_now_ns() - start)))
            return;
        inv_triggers_test(INV_AT_IDLE);
    }
}

void gomp_park_thread (int *addr, int val)
{
    struct gomp_waiter w = {.addr = addr,
                            .core = INV_HOLD_NONE,
                            .hold = INV_HOLD_NONE,
                            .needs_hold = needs_hold()};
    if (w.needs_hold) {
        w.tid = inv_own_tid();
        w.core = inv_thread_core();
    }
    if (!gomp_lot_enter(&w, val)) {
        if (w.needs_hold && inv_hold == INV_HOLD_NONE)
            gomp_hold_forgo(); /* the caller does not sleep, and computes on without a hold */
        return;
    }
    struct inv_pulled pulled = INV_NONE_PULLED;
    if (w.needs_hold) {
        gomp_work_sources.implicit->sleeps(addr);
        gomp_hold_yield();
        check_starved();
        pulled = inv_pull_waiting(gomp_unheld_compute());
    } else
        gomp_work_sources.implicit->publish();
    test_in_sleep(&w);
    gomp_waiter_sleep(&w);
    inv_pull_end(&pulled);
}
