/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ready.h - threads of a managed process that could go on and wait for a seat.
 *
 * One queue for each core: of the threads that sat there last.  They are pinned there, so
 * giving the core to one of them is one system call; giving it to a thread of another queue is a
 * migration, and two.  So a core serves its own queue first.
 * Each queue is first come, first served: a barrier's threads go round.
 */
#ifndef GOMP_READY_H
#define GOMP_READY_H 1

#include "parking.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* How many threads queue for a seat, in all queues.  Polled by whoever idles; a hint. */
extern _Atomic unsigned gomp_ready_count;

extern void gomp_ready_push (struct gomp_waiter *);
/* Take a thread for the seat: from its own queue, else from another's.  NULL: none. */
extern struct gomp_waiter *gomp_ready_pop (int seat);
/* Take a thread that may wait in vain while this core serves its own queue only: now and then,
 * one whose core is not held any more; more rarely, any. */
extern struct gomp_waiter *gomp_ready_overdue (int seat);
/* The waiter does not want to wait for a seat any longer.  False: somebody is about to wake it. */
extern bool gomp_ready_leave (struct gomp_waiter *);
/* Is anybody in the seat's own queue?  A hint. */
extern bool gomp_ready_here (int seat);
/* The same: cheaper where no thread of the process is ready. */
static inline bool gomp_ready_at (int seat)
{
    return atomic_load_explicit(&gomp_ready_count, memory_order_relaxed) > 0 &&
           gomp_ready_here(seat);
}
/* Changes whenever threads are taken (progress.c). */
extern unsigned gomp_ready_taken (void);
extern void gomp_ready_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
