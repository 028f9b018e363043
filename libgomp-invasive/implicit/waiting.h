/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * waiting.h - how every thread of the runtime waits for a word to change: spin while the
 * core has nothing better to do, then park (parking.h) and let other threads have it.
 *
 * All of libgomp's blocking primitives (mutex, semaphore, lock, barrier) come here by wait.h, so this is
 * where a waiting implicit task passes its core on.
 */
#ifndef GOMP_WAITING_H
#define GOMP_WAITING_H 1

#include "libgomp.h"
#include "sleepers.h"
#include "spin.h"

#pragma GCC visibility push(hidden)

/* Spin until *addr != val.  False: it is time to park. */
extern bool gomp_spin (int *addr, int val);

/* Sleep while *addr == val, until unparked (sleepers.h).  May return early; callers re-check.  An implicit task that
 * is a context lets others of its carrier run instead. */
extern void gomp_park (int *addr, int val);

/* gomp_spin, then gomp_park.  May return early. */
static inline void gomp_wait_while (int *addr, int val)
{
    if (__atomic_load_n(addr, MEMMODEL_RELAXED) == val && !gomp_spin(addr, val)) {
        gomp_park(addr, val);
        gomp_idle_slept();
    }
}

#pragma GCC visibility pop
#endif
