/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * points.c - see points.h.
 */
#include "libgomp.h"
#include "points.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "history.h"
#include "hold.h"
#include "region.h"
#include "unheld.h"

void gomp_hold_checkpoint (void)
{
    if (!inv_managed() || !gomp_holds_core() || !gomp_hold_called_back())
        return;
    if (gomp_in_context()) {
        gomp_context_yield();
        return;
    }
    gomp_hold_yield();
    gomp_hold_acquire();
}

void gomp_yield_point (void)
{
    if (gomp_in_context() && gomp_context_could_switch())
        gomp_context_yield();
    else
        gomp_hold_pause();
}

bool gomp_others_could_run (void)
{
    if (gomp_in_context() && gomp_context_could_switch())
        return true;
    if (inv_managed())
        return inv_hold != INV_HOLD_NONE && gomp_core_needed();
    return __atomic_load_n(&gomp_managed_threads, MEMMODEL_RELAXED) > gomp_available_cpus;
}

/* Do implicit tasks of the region wait for each other by sched_yield, and are they threads that pass their cores on?
 * Those of an elastic region that have been seen to are all started at once, and the kernel runs them in turn. */
static bool yields_to_own (const struct gomp_region *region)
{
    enum gomp_yields yields = gomp_history_yields(atomic_load_explicit(&region->fn, memory_order_relaxed),
                                                  atomic_load_explicit(&region->epoch, memory_order_relaxed));
    bool elastic = atomic_load_explicit(&region->elastic, memory_order_relaxed);
    return yields == GOMP_YIELDS_KNOWN || (yields == GOMP_YIELDS_SEEN && !elastic && !gomp_in_context());
}

bool gomp_program_yields (void)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_region *region = team ? team->barrier.region : NULL;
    if (!region || !inv_managed())
        return false;
    if (!gomp_holds_core()) {
        /* Beside threads that pass a core on, which sleep meanwhile, the kernel hardly runs a thread that yields. */
        if (!gomp_unheld_self || atomic_load_explicit(&region->elastic, memory_order_relaxed) || !yields_to_own(region))
            return false;
        gomp_hold_acquire();
        return true;
    }
    bool called_back = gomp_hold_called_back();
    if ((!called_back && !gomp_others_could_run() && !gomp_threads_queued()) || !yields_to_own(region))
        return false;
    if (called_back)
        gomp_hold_checkpoint();
    else
        gomp_yield_point();
    return true;
}
