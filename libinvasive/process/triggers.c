/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* triggers.c - see triggers.h. */
#include "libinvasive/process/triggers.h"
#include "libinvasive/process/thread.h"

#include <stddef.h>

struct inv_triggers inv_triggers;

bool inv_triggers_look(enum inv_trigger_point where)
{
    bool (*test)(enum inv_trigger_point) =
        atomic_load_explicit(&inv_triggers.test, memory_order_acquire);
    bool (*in_mpi)(void) = atomic_load_explicit(&inv_triggers.in_mpi, memory_order_relaxed);
    if (!test || (where != INV_IN_MPI && in_mpi && in_mpi()))
        return false;
    return test(where);
}

bool inv_triggers_need_me(void)
{
    return inv_triggers_pending() &&
           atomic_load_explicit(&inv_triggers.only_tid, memory_order_relaxed) == inv_own_tid();
}
