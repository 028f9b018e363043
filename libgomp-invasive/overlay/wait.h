/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.h - how every thread of the runtime waits for a word to change: spin while the
 * core has nothing better to do, then park (parking.h) and let other threads have it.
 *
 * All of libgomp's blocking primitives (mutex, semaphore, lock, barrier, dock) come
 * through do_wait and futex_wake, so this is where a waiting implicit task passes its
 * core on.  Replaces config/linux/wait.h and config/linux/<cpu>/futex.h.
 */
#ifndef GOMP_WAIT_H
#define GOMP_WAIT_H 1

#include "libgomp.h"
#include "parking.h"
#include <errno.h>
#include <limits.h>

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_PRIVATE_FLAG 128

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

extern int gomp_futex_wait, gomp_futex_wake; /* defined by upstream's mutex.c */

/* Spin until *addr != val.  Returns 0 when it changed, 1 when it is time to park. */
extern int gomp_spin (int *addr, int val);

/* The calling thread has slept after such a wait, or after another one that spin.c has ended, and has work
 * again: how long it should have gone on spinning is learned from that. */
extern void gomp_idle_slept (void);

static inline void cpu_relax (void)
{
    inv_cpu_relax();
}

static inline int do_spin (int *addr, int val)
{
    if (__atomic_load_n(addr, MEMMODEL_RELAXED) != val)
        return 0;
    return gomp_spin(addr, val);
}

static inline void futex_wait (int *addr, int val)
{
    gomp_park(addr, val);
}

static inline void futex_wake (int *addr, int count)
{
    gomp_unpark(addr, count);
}

static inline void do_wait (int *addr, int val)
{
    if (do_spin(addr, val)) {
        gomp_park(addr, val);
        gomp_idle_slept();
    }
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
