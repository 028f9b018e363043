/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spinlock.h - a lock that is held for a few instructions.
 */
#ifndef GOMP_SPINLOCK_H
#define GOMP_SPINLOCK_H 1

#include <libinvasive/base/assertion.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct gomp_spinlock {
    _Atomic int held;
};
/* Waits for the lock, which another thread holds, and takes it. */
extern void gomp_spinlock_contended (struct gomp_spinlock *);
static inline void gomp_spinlock_lock (struct gomp_spinlock *l)
{
    if (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
        gomp_spinlock_contended(l);
}
static inline void gomp_spinlock_unlock (struct gomp_spinlock *l)
{
    inv_assert(atomic_load_explicit(&l->held, memory_order_relaxed)); /* by the caller */
    atomic_store_explicit(&l->held, 0, memory_order_release);
}

#pragma GCC visibility pop
#endif
