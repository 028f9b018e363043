/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spin.h - how long a thread that waits keeps its core busy: the idle policy (spin.c).
 */
#ifndef GOMP_SPIN_H
#define GOMP_SPIN_H 1

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Is a thread that waits to give its core up at once, even if the core is not wanted? */
extern bool gomp_leaves_at_once (void);
/* Spins until ready(arg): true; or until the policy says to sleep, or to give the core to other
 * work: false.  For any thread, with a hold or without, managed or not. */
extern bool gomp_spin_until (bool (*ready) (void *), void *arg);
/* The same for a thread that holds a core.  Says why the spinning ended. */
enum gomp_idle_end {
    GOMP_IDLE_READY,
    GOMP_IDLE_NEEDED, /* another thread or implicit task could use the core, when last looked at */
    GOMP_IDLE_LONG    /* it is time to sleep */
};
extern enum gomp_idle_end gomp_idle_spin (bool (*ready) (void *), void *arg);
/* The calling thread has slept after such a wait, and has work again.  Adapts how long the thread
 * spins. */
extern void gomp_idle_slept (void);
/* The calling thread sleeps without having spun: nothing is to be learned from this wait. */
extern void gomp_idle_skipped (void);
/* Yield.  True if that took a millisecond or more: a thread with a time slice of its own has
 * run. */
extern bool gomp_yield_was_long (void);

#pragma GCC visibility pop
#endif
