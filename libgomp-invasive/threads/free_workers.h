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
    /* Workers that there are; how many of them pools may need; those that have been created and have not come to
     * their loop yet; those that were ever to be created (written by starters, after `starting` and before `count`;
     * seq_cst; partner: only_ours_left). */
    _Atomic int count, kept, starting;
    _Atomic unsigned started;
    /* A word on which to tell the surplus: raised after `kept` has become less (seq_cst; partner: wait_for_hold, which
     * reads the word before it compares the two). */
    _Atomic uint32_t leave_word;
    /* A worker that is one too many is on its way to where lenders find it.  Set and cleared by that
     * worker (seq_cst; no data goes with it). */
    _Atomic bool staying;
    /* How many of them are to prefer an unstarted implicit task to the queue of the ready.  Written by threads that
     * leave their cores to them. */
    _Atomic int tickets_first __attribute__((aligned(64)));
    struct gomp_spinlock lock; /* of what follows: */
    struct gomp_waiter *spares;
    struct gomp_free_worker *present; /* the list of all */
    /* The signals that the master of the last pool to grow had blocked.  Free workers have the same
     * mask, as a team's threads have with stock libgomp, whichever thread creates them: the watchdog,
     * which may, blocks all, and a handler for faults must run where the fault is. */
    sigset_t program_signals;
    void *(*main) (void *); /* what they execute; written when the library is loaded */
};

#pragma GCC visibility push(hidden)
extern struct gomp_free_workers gomp_workers;

/* What free workers execute, with their hold; before the first is started. */
extern void gomp_free_workers_execute (void *(*main) (void *hold));
/* Starts one with the hold, or INV_HOLD_NONE.  False: the system gives us no thread. */
extern bool gomp_free_worker_start (int hold);
/* Wakes one of the spares with the hold, or INV_HOLD_NONE.  False: there is none. */
extern bool gomp_spare_wake (int hold);
/* Puts the calling worker, which is to sleep then, among the spares. */
extern void gomp_spare_add (struct gomp_waiter *);
/* Is none parked where lenders find it, nor about to begin? */
static inline bool gomp_no_worker_is_parked (void)
{
    return inv_parked_count() == 0 &&
           atomic_load_explicit(&gomp_workers.starting, memory_order_relaxed) == 0;
}
/* Does one compute that is not about to end? */
extern bool gomp_free_worker_goes_on (void);

/* The calling worker takes the signal mask, enters the list of all, leaves it. */
extern void gomp_free_worker_signals (void);
extern void gomp_free_worker_enter (struct gomp_free_worker *self);
extern void gomp_free_worker_leave (struct gomp_free_worker *self);
/* So many may stay: as many as implicit tasks may sleep in barriers, and while they do, some on their
 * way. */
extern int gomp_free_workers_enough (void);

/* Free workers that there are now, including workers that are about to begin. */
extern unsigned gomp_free_workers_now (void);
/* Has each free worker that was to be started begun, or been refused?  *started: how many there were,
 * modulo 2^32.  Between two answers of yes with the same number none is started. */
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
