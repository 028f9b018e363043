/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * unheld.h - unheld threads: they compute without a hold, beside the threads that hold cores.
 *
 * The watchdog lets threads run so when those that hold cores seem to make no progress
 * (watchdog.h).  Often these are only slow: implicit tasks may take seconds.  So unheld threads are
 * kept in a list.  A core that becomes free, or that arrives, is given to one while it computes:
 * the thread is moved there, and finds out at its next scheduling point.  A thread on a core that
 * this process does not hold any more is moved off it.
 */
#ifndef GOMP_UNHELD_H
#define GOMP_UNHELD_H 1

#include "process.h"
#include "spinlock.h"
#include <libinvasive/base/assertion.h>

#pragma GCC visibility push(hidden)

struct gomp_unheld;
/* The calling thread as an unheld one; NULL: it is none. */
extern __thread struct gomp_unheld *gomp_unheld_self __attribute__((tls_model("initial-exec")));
#define gomp_unheld_self GOMP_OWN(gomp_unheld_self)
/* Written by unheld threads, and threads that give them holds. */
extern struct gomp_unheld_threads {
    _Atomic unsigned waiting; /* how many have no hold; polled; a hint */
    /* The list and all that is in it are changed under the lock only.  Held across the system call that
     * moves a thread: the thread must not go on and hand its hold over meanwhile. */
    struct gomp_spinlock lock __attribute__((aligned(64)));
    struct gomp_unheld *first;
    unsigned short on[INV_MAX_CORES]; /* of those without a hold, for each core */
} gomp_unheld_threads;

/* The caller goes on without a hold.  Cores are to be called for it then (gomp_want_cores). */
extern void gomp_unheld_begin (void);
/* A core for the i-th of `count` threads that the caller is about to wake to run unheld,
 * INV_HOLD_NONE: any.  The caller's own core comes last: a thread that wakes there may take it from
 * the caller at once. */
extern int gomp_unheld_core (unsigned i, unsigned count);
/* A scheduling point of an unheld thread: true when it has been given a hold, and is unheld no
 * more. */
extern bool gomp_unheld_check (void);
/* The caller does not compute any more.  True when it holds a core after all. */
extern bool gomp_unheld_end (void);
/* Gives the hold to an unheld thread.  False: none waits. */
extern bool gomp_unheld_place (int hold);
/* The hold is given up: moves unheld threads off its core. */
extern void gomp_unheld_leave (int hold);
/* Finds cores for unheld threads that have lost theirs.  Called by the watchdog. */
extern void gomp_unheld_rescue (void);
extern void gomp_unheld_forget (void);

/* Does any thread compute without a hold, as far as the caller sees? */
static inline bool gomp_unheld_compute (void)
{
    return atomic_load_explicit(&gomp_unheld_threads.waiting, memory_order_relaxed) > 0;
}

/* Does the calling thread hold a core? */
static inline bool gomp_holds_core (void)
{
    return inv_hold != INV_HOLD_NONE || (__builtin_expect(gomp_unheld_self != NULL, 0) &&
                                         gomp_unheld_check());
}

#pragma GCC visibility pop
#endif
