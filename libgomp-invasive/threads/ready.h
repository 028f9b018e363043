/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ready.h - threads of a managed process that could go on and wait for a core.
 *
 * There is one queue for each core, of the threads that held it last.  They are pinned there, so
 * giving the core to one of them takes one system call.  Giving it to a thread of another queue
 * takes two, and is a migration.  So a core serves its own queue first.  Each queue is first come,
 * first served, so the threads of a barrier take turns.
 */
#ifndef GOMP_READY_H
#define GOMP_READY_H 1

#include "parking.h"
#include "process.h"

#pragma GCC visibility push(hidden)

/* Written by threads that push and take waiters. */
extern struct gomp_ready {
    _Atomic unsigned count; /* how many threads queue for a core, in all queues; polled by idle threads; a hint */
    /* The last one is for threads that are not pinned: tokens, emulated cores, no hold yet. */
    struct gomp_ready_queue {
        struct gomp_spinlock lock; /* of the list */
        _Atomic unsigned count;    /* its length; written under the lock, read without: a hint */
        _Atomic unsigned taken;    /* threads taken so far; likewise */
        _Atomic unsigned turns;    /* of gomp_ready_next; by the thread that has the core */
        struct gomp_waiter *first, *last;
    } __attribute__((aligned(64))) queue[INV_MAX_CORES + 1];
} gomp_ready;

/* The waiter could go on: puts it at the end of its core's queue. */
extern void gomp_ready_push (struct gomp_waiter *);
/* Takes a thread for the hold: from its core's queue, else from another's.  NULL: none. */
extern struct gomp_waiter *gomp_ready_pop (int hold);
/* The same, but in one of 8 calls rather a thread whose queue no core serves, and in one of 64, if there is none, one of
 * any other queue: these might wait in vain while each core serves its own. */
extern struct gomp_waiter *gomp_ready_next (int hold);
/* Takes the waiter, which does not wait for a hold any longer, out of its queue.  False: another
 * thread has taken it, and is about to wake it. */
extern bool gomp_ready_leave (struct gomp_waiter *);
/* Does a thread wait in the queue of the hold's core?  A hint. */
extern bool gomp_ready_here (int hold);
/* The same: cheaper where no thread of the process is ready. */
static inline bool gomp_ready_at (int hold)
{
    return atomic_load_explicit(&gomp_ready.count, memory_order_relaxed) > 0 &&
           gomp_ready_here(hold);
}
/* How many threads have been taken, modulo 2^32 (for the watchdog). */
extern unsigned gomp_ready_taken (void);
extern void gomp_ready_forget (void);

#pragma GCC visibility pop
#endif
