/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ready.h - threads of a managed process that could go on and wait for a core.
 *
 * One queue for each core: of the threads that held it last.  They are pinned there, so giving the
 * core to one of them is one system call; giving it to a thread of another queue is a migration,
 * and two.  So a core serves its own queue first.  Each queue is first come, first served: a
 * barrier's threads go round.
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
        _Atomic unsigned turns;    /* of gomp_ready_overdue; by the thread that has the core */
        struct gomp_waiter *first, *last;
    } __attribute__((aligned(64))) queue[INV_MAX_CORES + 1];
} gomp_ready;

/* The waiter could go on: puts it at the end of its core's queue. */
extern void gomp_ready_push (struct gomp_waiter *);
/* Takes a thread for the hold: from its core's queue, else from another's.  NULL: none. */
extern struct gomp_waiter *gomp_ready_pop (int hold);
/* Take a thread that may wait in vain while this core serves its own queue only: now and then,
 * one whose core is not held any more; more rarely, any. */
extern struct gomp_waiter *gomp_ready_overdue (int hold);
/* The waiter does not want to wait for a hold any longer.  False: another thread is about to wake
 * it. */
extern bool gomp_ready_leave (struct gomp_waiter *);
/* Does a thread wait in the queue of the hold's core?  A hint. */
extern bool gomp_ready_here (int hold);
/* The same: cheaper where no thread of the process is ready. */
static inline bool gomp_ready_at (int hold)
{
    return atomic_load_explicit(&gomp_ready.count, memory_order_relaxed) > 0 &&
           gomp_ready_here(hold);
}
/* Changes whenever threads are taken (for the watchdog). */
extern unsigned gomp_ready_taken (void);
extern void gomp_ready_forget (void);

#pragma GCC visibility pop
#endif
