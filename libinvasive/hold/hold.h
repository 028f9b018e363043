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
/* Asks for all cores of this process's own that others hold; lenders wake parked workers with
 * them. */
void inv_hold_reclaim_owned(void);
/* Evicts the holder of one of our own cores, if it was asked for the core longer ago than the
 * reclaim bound.  Returns the hold or INV_HOLD_NONE.  One thread at a time. */
int inv_hold_evict_overdue(void);
/* Takes a core of ours from its thread, if the thread has slept (in a system call of its own) since
 * the last call.  The thread finds out at its next scheduling point (INV_LOST).  Returns the hold or
 * INV_HOLD_NONE.  One thread at a time. */
int inv_hold_retake_idle(void);
/* Of the *held cores that this process holds, how many have a holder thread that sleeps in the
 * kernel now?  A thread that has computed for more than half of the time since the last call does
 * not count, if that call was at most 10 ms ago.  In anonymous mode, where no thread holds a
 * certain core, both are 0.  One system call for each thread that computes, some for one that
 * sleeps.  One thread at a time. */
unsigned inv_holds_asleep(unsigned *held);
/* Makes `hold` the calling thread's: sets inv_hold, and pins the thread to that core if it is not
 * pinned there already. */
void inv_hold_begin(int hold);
/* The same for a hold that was handed over.  pinned: the waker has pinned the sleeping thread
 * there. */
void inv_hold_begin_handed(int hold, bool pinned);
/* Gives the hold to the unheld thread `tid` of this process.  pin: pin the thread to the core, since
 * it is not there yet.  False when it could not be pinned. */
bool inv_hold_handover(int hold, int tid, bool pin);
/* From now on threads that hold a core are pinned to it, the caller first of all.  Before this call
 * a thread is moved to its core, and the kernel may move it away: a process that has no region of
 * our OpenMP runtime may have another runtime, which asks the kernel how many threads it may
 * have. */
void inv_pin_threads(void);
/* Lends a hold that has been detached from its thread, and wakes a thread that can use it. */
void inv_hold_release(int hold);
/* For the child of a fork: its thread holds nothing. */
void inv_thread_forget(void);
/* Detaches the caller's hold and lends it, as inv_hold_release does.  inv_hold becomes
 * INV_HOLD_NONE. */
void inv_hold_lend(void);
/* Detaches the caller's hold, which another thread may then get.  Returns the hold, or
 * INV_HOLD_NONE: the caller had lost it.  inv_hold becomes INV_HOLD_NONE. */
int inv_hold_detach(void);

enum inv_verdict {
    INV_KEEP,   /* compute on */
    INV_WANTED, /* compute on, but do not idle: another process wants a core */
    INV_GIVE,   /* give it up at this scheduling point: the owner asks for it */
    INV_LOST    /* the thread was evicted, and has only to call inv_hold_detach */
};
/* What to do with a hold that a thread of this process has.  Two or three loads, no write. */
enum inv_verdict inv_hold_check(int hold);
/* What to do with the caller's hold. */
enum inv_verdict inv_hold_poll(void);

#endif
