/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spin.h - how long a thread that waits keeps its core busy: the idle policy (spin.c).
 */
#ifndef GOMP_SPIN_H
#define GOMP_SPIN_H 1

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Is a thread that waits, and holds a core, to give it up at once, also where the core is not
 * wanted? */
extern bool gomp_leaves_at_once (void);
/* Waits for something without sleeping as long as that is right; for a thread that holds a
 * core or not, managed or not.  True when `ready` says so; false when it is time to sleep, or to
 * give the core to other work. */
extern bool gomp_spin_until (bool (*ready) (void *), void *arg);
/* The same for a thread that holds a core, and why it is over. */
enum gomp_idle_end {
    GOMP_IDLE_READY,
    GOMP_IDLE_NEEDED, /* another thread or implicit task could use the core, at least just now */
    GOMP_IDLE_LONG
};
extern enum gomp_idle_end gomp_idle_spin (bool (*ready) (void *), void *arg);
/* The calling thread has slept after such a wait, and has work again: how long it should have gone on
 * spinning is learned from that. */
extern void gomp_idle_slept (void);
/* It waits without idling: nothing is to be learned. */
extern void gomp_idle_skipped (void);
/* Yield.  True when it has taken so long that a thread with a time slice of its own has run. */
extern bool gomp_yield_was_long (void);

#pragma GCC visibility pop
#endif
