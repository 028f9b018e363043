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

/* Implicit tasks that have not started wait for a thread which the system does not give us, and the
 * caller, which sleeps, for them: end the program if no other worker is there, nor a watchdog, which would
 * see it. */
static void check_starved (void)
{
    if (gomp_refused_ever() && gomp_work_sources.implicit->unstarted() && gomp_free_workers_now() == 0 &&
        !gomp_progress_start())
        gomp_fatal_starved();
}

/* Does the caller hold a core, or is it an unheld thread?  Threads of the program that are neither
 * (several of its threads open regions) need no hold. */
static bool needs_hold (void)
{
    if (!inv_managed())
        return false;
    bool is_unheld = gomp_unheld_self != NULL;
    return gomp_unheld_end() || is_unheld;
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
            gomp_hold_forgo(); /* on */
        return;
    }
    if (w.needs_hold) {
        gomp_work_sources.implicit->sleeps(addr);
        gomp_hold_yield();
        check_starved();
    } else
        gomp_work_sources.implicit->publish();
    gomp_waiter_sleep(&w);
}
