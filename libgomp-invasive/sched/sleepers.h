/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sleepers.h - waking threads and contexts that sleep in the parking lot, and sleeping until that.
 *
 * What is taken out of the parking lot goes on when there is a core for it: a thread of a managed process
 * queues for one (ready.h), a context goes to the queue of the process (suspended.h).
 */
#ifndef GOMP_SLEEPERS_H
#define GOMP_SLEEPERS_H 1

#include "parking.h"

#pragma GCC visibility push(hidden)
/* Wakes up to `count` threads and contexts that sleep on addr.  The caller has changed the word
 * before.  addr is only a key, never read: the memory may be gone. */
extern void gomp_unpark (int *addr, int count);
/* The same after a change by a seq_cst store or read-modify-write.  False: no core was called,
 * since no sleeper that needs one was found.  Contexts in the lists of carriers may still wait for
 * the change. */
extern bool gomp_unpark_sleepers (int *addr, int count);
/* Sleeps until a waker sets w->word; then begins the hold that came with it. */
extern void gomp_waiter_sleep (struct gomp_waiter *w);
/* The same for a waiter in a queue of the ready, which it leaves when the time is over.  Then it
 * goes on as an unheld thread. */
extern void gomp_waiter_sleep_for (struct gomp_waiter *w, int64_t timeout_ns);
#pragma GCC visibility pop
#endif
