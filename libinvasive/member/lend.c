/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * lend.c - inv_lend and inv_reclaim of the public interface: a program says that its thread waits.
 *
 * To the rest of libinvasive and to the OpenMP runtime a thread that has lent its core is one that has
 * been evicted from it: at its next scheduling point it finds that it has lost its hold, and gets
 * another one.  So a program that never reclaims does no harm, and nothing here has to be undone when
 * the thread ends.  The OpenMP runtime takes a core back for such a thread that begins a region.
 */
#include "invasive.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/wait.h"
#include "libinvasive/process/thread.h"

bool inv_lend(void)
{
    if (!inv_has_manager())
        return false;
    INV_UNCANCELLED;
    return inv_wait_elsewhere();
}

bool inv_reclaim(void)
{
    if (!inv_hold_is_lent || !inv_has_manager())
        return false;
    INV_UNCANCELLED;
    inv_wait_elsewhere_end();
    return inv_hold != INV_HOLD_NONE;
}
