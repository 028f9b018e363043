/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.h - how the calling thread comes to a core, and leaves it to others.
 *
 * In a managed process a thread needs a *hold* of a core (libinvasive/process.h) to
 * compute.  There are never more running threads than holds, unless the watchdog lets more
 * (unheld.h):
 *  - a thread that blocks hands its hold over (gomp_hold_yield), to what cores.h says;
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
/* Hands the calling thread's hold over to the thread or process that it helps most; returns without
 * a hold.  A caller that has lost its hold, or had none, sees to it that a free core is found for
 * waiting threads. */
extern void gomp_hold_yield (void);
/* Queues for a core; returns with a hold.  For threads that have none and must have one. */
extern void gomp_hold_acquire (void);
/* The caller computes without a hold: an unheld thread. */
extern void gomp_hold_forgo (void);
/* A scheduling point of a thread that waits without sleeping and is no context: lets other threads compute. */
extern void gomp_hold_pause (void);
/* gomp_unpark of a thread that waits for a lock, which the caller has released.  A caller that
 * waits in a loop of tests of MPI lets that thread go first, if it needs a core.  Otherwise the
 * caller would have the lock again before that thread comes to it, each time. */
extern void gomp_unlock_wake (int *addr, int count);
/* Once for each call of gomp_hold_pause that has left its core to a worker: is the calling worker to prefer an
 * unstarted implicit task to the queue of the ready? */
extern bool gomp_hold_ticket_first (void);
/* The calling thread is about to wait in MPI, and to lend its core: is there work for that? */
extern bool gomp_leaves_work (void);
/* What a thread does that waits in a loop of tests of MPI. */
extern const struct inv_give_way gomp_give_way;
#pragma GCC visibility pop
#endif
