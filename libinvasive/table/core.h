/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * core.h - the transitions of a core's word, and waking the threads that they help.
 *
 * All functions work on a table and slot numbers alone, keep no state of their own
 * and never block.  So they run in the OpenMP runtime, in the MPI shim, in rmd (for
 * dead processes), in the stress test, and as Promela in model/core.pml.
 *
 * `me` and `whom` are slot numbers.  All functions are lock-free and async-signal-safe.
 */
#ifndef INV_CORE_H
#define INV_CORE_H

#include "libinvasive/table/table.h"

/*
 * What a process has to do so that no wake-up is lost (hold/parked.c and hold/wait.c, checked in the model):
 *
 * - Parking: set the want bit if there is work, read the worker's bell, set its bit in
 *   `parked`, fence (seq_cst), then once more take or ask for its own cores
 *   (inv_core_reclaim; the core that was free when it asked last may be another's now) and
 *   borrow a free core of others, then sleep.  The lender's side: free the core, fence,
 *   look at wanting and parked (inv_core_offer).
 * - Awake again for whatever reason, a worker withdraws its bit.  If the bit was still set, no
 *   waker has taken the worker: a timer has woken it, or rmd that reaps a process (inv_slot_reap).
 *   If not, the waker that took it has rung or will.
 * - A worker that was woken with a core borrows and uses the core.  If the worker has nothing to
 *   do, it lends and offers the core again: another worker may need it.
 * - Sleeping in MPI: store `home`, then again and again: read the bell; look whether the wait is
 *   over; if home has been handed to the thread (inv_core_claim), lend and offer it; sleepers++;
 *   sleep on the bell; sleepers--.
 * - When the wait is over, and the thread holds home after inv_core_claim,
 *   inv_core_reclaim or inv_core_evict: store INV_NO_CORE in `home`.  When it holds another core:
 *   store INV_NO_CORE, then inv_core_forgo.  Otherwise a process that saw the thread sleep could
 *   make the core its process's after the thread has looked, and no thread would compute there.
 * - A process that stops wanting withdraws its reclaims (inv_core_reclaim_cancel).
 */

/* borrow: no holder -> me.  Refused when the core is reserved for another owner; clears the
 * owner's own reclaim.
 * acquire: what the lender did before it lent is visible to the borrower's worker. */
bool inv_core_borrow(struct inv_table *t, unsigned core, unsigned me);

/* Borrows the free core that is nearest to core `home`: of the same physical core, cache, NUMA
 * node, package, in this order.  Looks at each core once.  Returns the core, or INV_NO_CORE. */
int inv_core_borrow_near(struct inv_table *t, unsigned home, unsigned me);

/* lend: me -> no holder.  A reclaim that the owner has asked for stays in the word: the
 * core is then reserved for the owner.  release: partner is inv_core_borrow.
 * True: the caller then offers the core.  False: `me` does not hold it any more (evicted). */
bool inv_core_lend(struct inv_table *t, unsigned core, unsigned me);

enum inv_reclaim { INV_RECLAIM_GOT, INV_RECLAIM_HELD, INV_RECLAIM_ASKED, INV_RECLAIM_NOT_OWNER };
/* reclaim: the owner takes its core if it has no holder, else asks for it.  GOT: it is the
 * caller's now.  HELD: a thread of this process has it already. */
enum inv_reclaim inv_core_reclaim(struct inv_table *t, unsigned core, unsigned owner);

/* Withdraw a reclaim.  True when the core had been given back meanwhile and has no
 * holder: the caller then takes it (inv_core_borrow) or offers it. */
bool inv_core_reclaim_cancel(struct inv_table *t, unsigned core, unsigned owner);

/* claim: has `core` been handed to a sleeping thread of `me`?  Then the caller, and no other thread
 * of this process, has the core from now on, and holds or lends it. */
bool inv_core_claim(struct inv_table *t, unsigned core, unsigned me);

/* forgo: `core` was the home of a thread of `me` that does not need it any more and has stored
 * INV_NO_CORE in `home`.  Gives the core up if it has been handed to `me`, drops the reclaim of
 * `me`, and makes processes fail that are about to hand it to `me`.  True when the core is free:
 * the caller offers it. */
bool inv_core_forgo(struct inv_table *t, unsigned core, unsigned me);

/* evict: holder -> owner, when the reclaim bound has passed.  The caller re-pins the
 * old holder's thread (holder_tid).  False when the owner has changed or the core had no
 * holder.  *evicted receives the slot that lost it. */
bool inv_core_evict(struct inv_table *t, unsigned core, unsigned owner, unsigned *evicted);

/* own: rmd gives the core to a new owner (slot, or -1 for none).  The holder stays.  A pending
 * reclaim of the old owner is dropped; on behalf of a new owner that wants a core, the core is
 * asked for.  The caller offers the core when it has no holder.  Returns the old owner's slot, -1
 * for none. */
int inv_core_own(struct inv_table *t, unsigned core, int new_owner);

/*
 * withdraw, expel, admit: rmd moves the core between domains.
 * withdraw: the core gets the owner INV_ELSEWHERE and is asked for.  Its holder gives it up at the
 * next scheduling point and rings rmd's bell, and no process takes it.  True: it has no holder
 * already; later inv_core_is_free says whether it has.
 * expel: the core has no holder from now on; the caller keeps the former holder's thread away.
 * admit: the core belongs to this domain again, without an owner.
 */
bool inv_core_withdraw(struct inv_table *t, unsigned core);
bool inv_core_is_free(struct inv_table *t, unsigned core);
void inv_core_expel(struct inv_table *t, unsigned core);
void inv_core_admit(struct inv_table *t, unsigned core);

/* Part of inv_slot_reap, for one core.  The slot's `home` must be INV_NO_CORE.  True: the dead
 * process held the core. */
bool inv_core_reap(struct inv_table *t, unsigned core, unsigned dead);

/* seize: rmd takes the core from a holder that cannot give it up (it is stopped, or sleeps).  The
 * core keeps its owner; if the owner is that holder, its reclaim is dropped.  True when `holder`
 * held the core; the caller offers it. */
bool inv_core_seize(struct inv_table *t, unsigned core, unsigned holder);

/*
 * A thread that holds a core of its process's own may sleep in the kernel (a read, a join, a page
 * fault), where no code of ours runs.  rmd then lends the core for it, and returns the core when the
 * thread runs again; the thread knows nothing of either, unless it comes to a scheduling point
 * meanwhile.
 *
 * lend_for: by rmd: `tid`, a thread of the process in slot `owner`, holds the core and sleeps.
 * True: the core has no holder now; the caller offers it.  False: the thread has moved on.
 * return_to: by rmd: makes the absent thread `tid` the core's holder again.  True: *evicted is the
 * slot that has lost the core, INV_MAX_SLOTS if it had no holder.  (holder_tid names the thread
 * only when the thread knows.)  False: the thread is not absent any more.
 * end_absence: by the thread itself, which has found that its process does not hold the core: the
 * core is not returned to it from now on.  current: holder_tid named the thread until now.  True:
 * the thread has the core, because the core has been returned, was free, or was not lent at all.
 */
/* The thread that holds the core, 0 unknown: the absent thread, if there is one, else
 * holder_tid. */
int32_t inv_core_thread(struct inv_table *t, unsigned core);
bool inv_core_lend_for(struct inv_table *t, unsigned core, unsigned owner, int32_t tid);
bool inv_core_return_to(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                        unsigned *evicted);
bool inv_core_end_absence(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                          bool current);

/* repair: rmd puts a word right that a process has overwritten, or that a former rmd has left
 * unfinished.  The core gets the owner `name` (slot + 1, INV_NOBODY or INV_ELSEWHERE) and is asked
 * for on its behalf as by inv_core_own.  A holder that is no member is removed (bit s of `members`:
 * slot s is a member), and so is a reclaim for another owner.  True when something was wrong; the
 * caller then offers the core. */
bool inv_core_repair(struct inv_table *t, unsigned core, unsigned name,
                     const uint64_t members[INV_SLOT_WORDS]);

/* rescue: wakes all threads that a dead process or rmd may have been about to wake, asks for the
 * cores of owners that wait for them, and offers all free cores.  Needless wake-ups are
 * harmless. */
void inv_rescue(struct inv_table *t);

/* offer: a core has become free; wakes a thread that can use it: a thread of the owner that sleeps
 * in MPI and needs this core, else a parked worker of the owner when it asked for the core, else of
 * `me` when it wants, else of the other wanting processes in turn.  The worker is pinned to the
 * core while it is still parked, so that it wakes there.  `me` may be INV_MAX_SLOTS: no process
 * (rmd). */
void inv_core_offer(struct inv_table *t, unsigned core, unsigned me);

/* ring: tells the process in slot `whom` that its MPI waits may be over.  No system call when none
 * of its threads sleeps.  If its sleeping thread needs its home core, the core is reclaimed on the
 * thread's behalf, and the thread is woken when the core is there. */
void inv_ring(struct inv_table *t, unsigned whom);

/* wants: does any process but the one in slot `me` want a core? */
bool inv_others_want(struct inv_table *t, unsigned me);
/* Writes whether the process in slot `me` wants a core; reads it. */
void inv_want_set(struct inv_table *t, unsigned me, bool wants);
bool inv_want_get(struct inv_table *t, unsigned me);

/* parked workers: takes one of the process in slot `whom` (highest bit first), and returns its
 * number;
 * -1: none is parked.  The taker must wake that worker with inv_parked_ring: `entry` is its number,
 * `core` the core that it may borrow, INV_NO_CORE: none. */
int inv_parked_take(struct inv_table *t, unsigned whom);
void inv_parked_ring(struct inv_table *t, unsigned whom, int entry, int core);

/* Tokens; `me` is the caller's slot.
 * Take a token if one is free.  False: none is. */
bool inv_token_take(struct inv_table *t, unsigned me);
/* Take a token in any case: the number of free ones may become negative. */
void inv_token_force(struct inv_table *t, unsigned me);
/* In pinned mode: take the token with which a process computes that has no core.  False: another
 * thread of the process has it. */
bool inv_token_take_only(struct inv_table *t, unsigned me);
/* Return a token, and wake a parked worker of a process that wants one.  The worker takes it
 * itself. */
void inv_token_return(struct inv_table *t, unsigned me);
/* Do more threads have a hold than there are cores?  A hint. */
bool inv_token_overdrawn(struct inv_table *t);
/* There are more free tokens now: rmd wakes parked workers of processes that want. */
void inv_token_offer(struct inv_table *t);

/*
 * reap: by rmd, after it has set the slot's state to DEAD.  Frees and offers the dead process's
 * cores and tokens, clears its ownership, wants and reclaims, and wakes all threads that it may
 * have been about to wake.  *freed, if not NULL, becomes the number of cores that the process held.
 * The slot may be used again afterwards.
 */
void inv_slot_reap(struct inv_table *t, unsigned dead, unsigned *freed);

/* Pin a kernel thread of this domain to a core (no-op when emulated).  tid 0 is the
 * caller.  Returns 0 or -errno. */
int inv_pin(struct inv_table *t, int tid, int core);

#endif
