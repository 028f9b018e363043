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
    /* Threads that wait in MPI now: while there are any, idle workers give their cores
     * away at once.  Writers: inv_wait_begin/end.  Relaxed: a hint */
    _Atomic unsigned threads;
    /* Until this time (ns) idle threads hold own cores for a while although other processes want them,
     * since iterations are shorter so (mpi-shim/measure/short_waits.h).  Writer: the MPI shim, at the end of a
     * wait.  Relaxed: a hint */
    _Atomic uint64_t holds_until_ns;
    /* The hold that a sleeping thread keeps, or INV_HOLD_NONE.  Another thread of this process that needs a
     * hold may take it from here.  Written by wait.c */
    _Atomic int kept_hold;
    /* Of wait.c.  How many background threads computed at the last look of any thread.  Relaxed: a
     * hint */
    _Atomic int background_threads;
};
extern struct inv_waits inv_waits;
/* For the child of a fork: no thread waits there. */
void inv_waits_forget(void);

/* inv_wait_begin: the caller is about to wait.  Gives its hold up, unless threads of the program
 * compute that have none (background.c).  Read the bell before (inv_bell_read). */
uint32_t inv_bell_read(void);
void inv_wait_begin(void);
/* Sleep until the bell is not `seen` any more or the time is over.  True when rung.  Now and then it
 * reconsiders, before the sleep, whether to lend or to keep the hold. */
bool inv_wait_sleep(uint32_t seen, int64_t timeout_ns);
/* The wait is over: the caller holds a core again when it returns (its own core first; after the
 * reclaim bound the borrower is evicted). */
void inv_wait_end(void);

/* The caller lends its hold and goes on without one, to wait where no call of ours does (lend.c).  False:
 * it has none, has lent it already, or is in a wait of these (in a function that MPI calls back).  The
 * lend is over at the thread's next scheduling point, at its next wait in MPI, or with
 * inv_wait_elsewhere_end, which returns as inv_wait_end does. */
bool inv_wait_elsewhere(void);
void inv_wait_elsewhere_end(void);

/* The first hold of a process, before it is managed: as in inv_wait_end, until `limit_ns`. */
int inv_first_hold(uint64_t limit_ns);
/* Would a thread that the caller evicted compute on the caller's core while the caller waits
 * (evicted.h)?  As far as is known. */
bool inv_evicted_waits(void);
/* Wake process `slot` of this domain if it waits (see inv_ring). */
void inv_ring_slot(unsigned slot);

#endif
