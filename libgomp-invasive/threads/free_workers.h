/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * free_workers.h - how many free workers there are, and how one is found for a core.
 *
 * A free worker is a kernel thread of the process that runs any work that there is (workers.h).  One that
 * has neither work nor a hold is parked where lenders of other processes find it (libinvasive/hold/parked.c);
 * workers beyond the number that a process can show there are spares.
 */
#ifndef GOMP_FREE_WORKERS_H
#define GOMP_FREE_WORKERS_H 1

#include "parking.h"
#include "process.h"
#include "spinlock.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A free worker, as other threads see it. */
struct gomp_free_worker {
    struct gomp_free_worker *next;
    /* Written by the worker, relaxed; a fence follows, before its last look (must_stay). */
    _Atomic bool ending;
};

struct gomp_free_workers {
    /* The next four are seq_cst where nothing else is said. */
    /* Free workers that exist.  Raised by the thread that creates one (gomp_free_worker_start),
     * which lowers it where the system refuses, and lowered by a worker that ends
     * (end_if_not_needed).  Readers: these workers, masters that trim, threads that are about to
     * sleep, the watchdog. */
    _Atomic int count;
    /* Free workers that pools may need.  Writers: masters, each for its pool (gomp_workers_keep).
     * Readers: workers that may end, and masters that trim; partner of both: `leave_word`. */
    _Atomic int kept;
    /* Free workers that have been created and are not in their loop yet.  Raised with `count`,
     * lowered by the worker when it is in the list (gomp_free_worker_enter).  Readers: a thread
     * that has queued work (gomp_no_worker_is_parked, relaxed after the fence of gomp_want_cores;
     * partner: must_stay), and the watchdog. */
    _Atomic int starting;
    /* Free workers that were ever to be created.  Written after `starting` and before `count`;
     * partner: only_ours_left, in the watchdog. */
    _Atomic unsigned started;
    /* Futex of parked workers, raised when some of them may end: after `kept` has become less
     * (seq_cst; partner: wait_for_hold, which reads it before it compares `count` with `kept`). */
    _Atomic uint32_t leave_word;
    /* A worker that was about to end is about to park instead, so that lenders find one
     * (must_stay).  Set and cleared by that worker (seq_cst; no data goes with it). */
    _Atomic bool staying;
    /* How many workers are to prefer an unstarted implicit task to the queue of the ready.  Raised
     * by threads that leave their cores to workers, lowered by these (gomp_hold_ticket_first). */
    _Atomic int tickets_first __attribute__((aligned(64)));
    struct gomp_spinlock lock; /* of what follows: */
    struct gomp_waiter *spares;
    struct gomp_free_worker *present; /* the list of all that are in their loop */
    /* The signal mask of the master of the last pool to grow.  Free workers take it, as threads of
     * a team do with stock libgomp.  They do not inherit it: the watchdog may create them, and
     * blocks all signals, but a handler of the program for faults must run in the thread of the
     * fault. */
    sigset_t program_signals;
    void *(*main) (void *); /* what they execute; written when the library is loaded */
    /* The pool that may have bound workers beside free ones (team.c).  Writer: a master, once;
     * relaxed: only the address is compared. */
    _Atomic(const void *) beside;
};

#pragma GCC visibility push(hidden)
extern struct gomp_free_workers gomp_workers;

/* Sets the function that free workers execute, with their hold.  To be called before one is
 * started. */
extern void gomp_free_workers_execute (void *(*main) (void *hold));
/* Starts a free worker with the hold, or INV_HOLD_NONE.  False: the system refuses a thread. */
extern bool gomp_free_worker_start (int hold);
/* Wakes one of the spares with the hold, or INV_HOLD_NONE.  False: there is none. */
extern bool gomp_spare_wake (int hold);
/* Puts the calling worker, which is about to sleep, among the spares. */
extern void gomp_spare_add (struct gomp_waiter *);
/* Is no worker parked where lenders find it, and none about to enter its loop? */
static inline bool gomp_no_worker_is_parked (void)
{
    return inv_parked_count() == 0 &&
           atomic_load_explicit(&gomp_workers.starting, memory_order_relaxed) == 0;
}
/* Is there a free worker in its loop that is not about to end? */
extern bool gomp_free_worker_goes_on (void);

/* The calling worker takes the signal mask, enters the list of all, leaves it. */
extern void gomp_free_worker_signals (void);
extern void gomp_free_worker_enter (struct gomp_free_worker *self);
extern void gomp_free_worker_leave (struct gomp_free_worker *self);
/* How many free workers may stay: as many as pools may need, since that many implicit tasks may
 * sleep in barriers, and some more unless that is 0. */
extern int gomp_free_workers_enough (void);

/* Free workers that there are now, including workers that are about to begin. */
extern unsigned gomp_free_workers_now (void);
/* Has each free worker that was to be started entered its loop, or been refused?  *started: how
 * many there were, modulo 2^32.  Between two answers of yes with the same number none is
 * started. */
extern bool gomp_free_workers_started (unsigned *started);
/* Free workers are the process's, not a pool's, but each pool says how many it may need again:
 * `more` than it said before.  Free workers beyond the sum end when they have nothing to do;
 * gomp_workers_trim tells sleeping ones, and may wait for them, but not for long. */
extern void gomp_workers_keep (int more);
extern void gomp_workers_trim (bool wait);
/* For the child of a fork. */
extern void gomp_free_workers_forget (void);
#pragma GCC visibility pop
#endif
