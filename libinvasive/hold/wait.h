/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.h - a thread that waits for another process gives its core away meanwhile.  For the MPI shim.
 */
#ifndef INV_WAIT_H
#define INV_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct inv_waits {
    /* Number of threads that wait in MPI now: while there are any, idle workers give their cores
     * away at once.  Writers: inv_wait_begin/end.  Relaxed: a hint */
    _Atomic unsigned threads;
    /* Until this time (ns) idle threads hold own cores for a while although other processes want them,
     * since iterations are shorter so (mpi-shim/measure/short_waits.h).  Writer: the MPI shim, at the end of a
     * wait.  Relaxed: a hint */
    _Atomic uint64_t holds_until_ns;
    /* The hold that a sleeping thread keeps, or INV_HOLD_NONE.  Another thread of this process that needs a
     * hold may take it from here.  Written by wait.c */
    _Atomic int kept_hold;
    /* How many background threads computed when a thread counted them last.  Writer: wait.c.
     * Relaxed: a hint */
    _Atomic int background_threads;
};
extern struct inv_waits inv_waits;
/* For the child of a fork: no thread waits there. */
void inv_waits_forget(void);

/* A wait is inv_wait_begin; then again and again inv_bell_read, a look whether the wait is over,
 * and inv_wait_sleep; then inv_wait_end. */

/* The present count of the process's bell.  Read it before that look: a ring that comes later ends
 * the sleep. */
uint32_t inv_bell_read(void);
/* The caller is about to wait.  Gives its hold up, unless background threads compute
 * (background.c). */
void inv_wait_begin(void);
/* Sleeps until the bell is not `seen` any more, or for timeout_ns.  True when rung.  Now and then
 * decides anew, before the sleep, whether the hold is lent or kept. */
bool inv_wait_sleep(uint32_t seen, int64_t timeout_ns);
/* The wait is over: the caller holds a core again when this returns (its own core first; after the
 * reclaim bound the borrower is evicted). */
void inv_wait_end(void);

/* The caller lends its hold and goes on without one, to wait outside of our libraries (lend.c).
 * False: it has no hold, has lent it already, or is between inv_wait_begin and inv_wait_end (in a
 * function that MPI calls back).  The lend is over at the thread's next scheduling point, at its
 * next wait in MPI, or with inv_wait_elsewhere_end, which returns as inv_wait_end does. */
bool inv_wait_elsewhere(void);
void inv_wait_elsewhere_end(void);

/* The first hold of a process, before it is managed: as in inv_wait_end, until the time limit_ns
 * (inv_now_ns).  Returns the hold, or INV_HOLD_NONE. */
int inv_first_hold(uint64_t limit_ns);
/* Would a thread that the caller evicted compute on the caller's core while the caller waits
 * (evicted.h)?  As far as the caller knows. */
bool inv_evicted_waits(void);
/* Wakes process `slot` of this domain if it waits (see inv_ring). */
void inv_ring_slot(unsigned slot);

#endif
