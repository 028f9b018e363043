/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.h - the cores that this process's threads hold: taking, keeping, giving up.
 *
 * All functions are for the calling thread of a managed process.
 */
#ifndef INV_HOLD_H
#define INV_HOLD_H

#include "libinvasive/process/thread.h"

/* Takes a free core: one of our own, else the nearest to the first of our own; else the token, if the
 * process owns no core and holds none.  Returns the hold or INV_HOLD_NONE.  Does not pin and does not
 * change inv_hold: see inv_hold_begin. */
int inv_hold_acquire(void);
/* In pinned mode: takes the process's token, also if the process owns or holds cores.  Returns
 * INV_HOLD_TOKEN, or INV_HOLD_NONE: another thread has it. */
int inv_hold_take_only_token(void);
/* Ask for all our own cores that others hold; they come back through parked workers. */
void inv_hold_reclaim_owned(void);
/* Evicts the holder of one of our own cores, if it was asked for the core longer ago than the
 * reclaim bound.  Returns the hold or INV_HOLD_NONE.  One thread at a time. */
int inv_hold_evict_overdue(void);
/* Takes a core of ours from its thread, if the thread has slept (in a system call of its own) since
 * the last call.  The thread finds out at its next scheduling point (INV_LOST).  Returns the hold or
 * INV_HOLD_NONE.  One thread at a time. */
int inv_hold_retake_idle(void);
/* How many of the cores that we hold are held by threads that sleep in the kernel now?  A thread that has computed for
 * more than half of the time since the last call does not count, if that call was within 10 ms.  One system call for each
 * thread that computes, some for one that sleeps.  *held: all that we hold.  0 of 0 where it is not known which these
 * are.  One thread at a time. */
unsigned inv_holds_asleep(unsigned *held);
/* Makes the hold the calling thread's: sets inv_hold, and pins the thread if it is not pinned
 * there. */
void inv_hold_begin(int hold);
/* The same for a hold that was handed over.  pinned: the waker pinned the thread to it in its sleep. */
void inv_hold_begin_handed(int hold, bool pinned);
/* Gives the hold to the unheld thread `tid` of this process.  pin: pin the thread to the core, since
 * it is not there yet.  False when it could not be pinned. */
bool inv_hold_handover(int hold, int tid, bool pin);
/* From now on threads that hold a core are bound to it, the caller first of all.  Before, they are
 * moved there and free to be moved away: a process that has no region of our OpenMP runtime may
 * have another runtime, which asks the kernel how many threads it may have. */
void inv_bind_threads(void);
/* Gives a hold up that is no thread's. */
void inv_hold_release(int hold);
/* For the child of a fork: its thread holds nothing. */
void inv_thread_forget(void);
/* Gives the caller's hold up: lends it, and wakes a thread that can use it.  inv_hold becomes NONE. */
void inv_hold_lend(void);
/* Forgets the caller's hold without lending, to give it to another thread.  Returns it, or
 * INV_HOLD_NONE: it was lost. */
int inv_hold_detach(void);

enum inv_verdict {
    INV_KEEP,   /* compute on */
    INV_WANTED, /* another process would use the core if you idle on it */
    INV_GIVE,   /* give it up at this scheduling point: the owner asks for it */
    INV_LOST    /* evicted: it is not yours any more (inv_hold_detach it) */
};
/* What to do with a hold of this process.  Two or three loads, no write. */
enum inv_verdict inv_hold_check(int hold);
/* What to do with the caller's hold. */
enum inv_verdict inv_hold_poll(void);

#endif
