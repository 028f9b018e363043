/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.h - how the calling thread gets a hold, and gives it up.
 *
 * In a managed process a thread needs a *hold* of a core (libinvasive/process.h) to
 * compute.  There are never more running threads than holds, unless the watchdog lets more run
 * (unheld.h):
 *  - a thread that blocks hands its hold over (gomp_hold_yield), in the order of cores.h;
 *  - a thread that becomes runnable queues for a core (ready.h) instead of running;
 *  - workers with neither work nor a hold are parked where lenders of other processes find them
 *    (free_workers.h).
 * In an unmanaged process no thread needs a hold and all of this is skipped.  A process that has
 * joined a domain of its own (inv_join_standalone) counts as managed here.
 */
#ifndef GOMP_HOLD_H
#define GOMP_HOLD_H 1

#include "process.h"
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)
/* Hands the calling thread's hold over (gomp_hold_handover); returns without a hold.  If the caller
 * has lost its hold, or had none, looks for a free core for threads that wait. */
extern void gomp_hold_yield (void);
/* Queues for a core; returns with a hold.  For threads that have none and must have one. */
extern void gomp_hold_acquire (void);
/* The caller, which has no hold, becomes an unheld thread. */
extern void gomp_hold_forgo (void);
/* A scheduling point of a thread that waits without sleeping and is no context: lets other threads compute. */
extern void gomp_hold_pause (void);
/* gomp_unpark of a thread that waits for a lock, which the caller has released.  A caller that
 * waits in a loop of tests of MPI lets that thread go first, if it needs a core.  Otherwise the
 * caller would have the lock again before that thread comes to it, each time. */
extern void gomp_unlock_wake (int *addr, int count);
/* Is the calling worker to prefer an unstarted implicit task to the queue of the ready?  True once
 * for each call of gomp_hold_pause that has left its core to a worker. */
extern bool gomp_hold_ticket_first (void);
/* The calling thread is about to wait in MPI, and to lend its core: is there work of this process
 * for the core? */
extern bool gomp_leaves_work (void);
/* The functions for a thread that waits in a loop of tests of MPI, or calls sched_yield. */
extern const struct inv_give_way gomp_give_way;
#pragma GCC visibility pop
#endif
