/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * doacross.h - waiting for an iteration of a doacross loop.  The posting side only
 * stores, and wakes no thread.  So: spin a little, then let other threads compute on the core
 * between two looks.  Replaces config/linux/doacross.h.
 */
#ifndef GOMP_DOACROSS_H
#define GOMP_DOACROSS_H 1

#include "libgomp.h"
#include "points.h"
#include "wait.h"

static inline void doacross_spin (unsigned long *addr, unsigned long expected, unsigned long cur)
{
    /* The iteration may be one of an implicit task that waits for this core. */
    enum { LOOK_EVERY = 16, YIELD_EVERY = 1024 };
    unsigned spins = 0;
    do {
        if (++spins % YIELD_EVERY == 0 || (spins % LOOK_EVERY == 0 && gomp_others_could_run()))
            gomp_yield_point();
        cpu_relax();
        cur = __atomic_load_n(addr, MEMMODEL_RELAXED);
    } while (expected >= cur);
}
#endif
