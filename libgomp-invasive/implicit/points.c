/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * points.c - see points.h.
 */
#include "libgomp.h"
#include "points.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "hold.h"
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
