/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spinlock.c - see spinlock.h.
 */
#include "spinlock.h"
#include <libinvasive/base/futex.h>

void gomp_spinlock_contended (struct gomp_spinlock *l)
{
    unsigned spins = 0;
    do {
        while (atomic_load_explicit(&l->held, memory_order_relaxed))
            if (++spins % 128 == 0)
                inv_kernel_yield(); /* the holder may have been preempted on this core */
            else
                inv_cpu_relax();
    } while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire));
}
