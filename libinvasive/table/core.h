/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * core.h - the transitions of a core's word, and waking the threads that they help.
 *
 * Everything here works on a table and slot numbers alone, keeps no state of its own
 * and never blocks; so it runs in the OpenMP runtime, in the MPI shim, in rmd (for
 * the dead), in the stress test, and as Promela in model/core.pml.
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
 * - A worker that was woken with a core borrows it and uses it.  When it has nothing to
 *   do, it lends and offers the core again: it was woken instead of another worker.
 * - Sleeping in MPI: store `home`, then again and again: read the bell, look for what it
 *   waits for, if home has been handed to it (inv_core_claim) lend and offer it, sleepers++,
 *   sleep on the bell, sleepers--.
 * - When the wait is over, and the thread holds home after inv_core_claim,
 *   inv_core_reclaim or inv_core_evict: store INV_NO_CORE in `home`.  When it holds another core:
 *   store INV_NO_CORE, then inv_core_forgo.  Otherwise a process that saw it sleep makes the core
 *   ours after we have looked, and no thread ever computes there.
 * - A process that stops wanting withdraws its reclaims (inv_core_reclaim_cancel).
 */

/* borrow: no holder -> me.  Refused when the core is reserved for another owner; clears the
 * owner's own reclaim.
 * acquire: what the lender did before it lent is visible to the borrower's worker. */
bool inv_core_borrow(struct inv_table *t, unsigned core, unsigned me);

/* Borrow a free core, the nearest to core `home` that there is: of the same physical core, cache,
 * NUMA node, package, in this order.  Looks at each core once, as any search does.  Returns it,
 * or INV_NO_CORE. */
int inv_core_borrow_near(struct inv_table *t, unsigned home, unsigned me);

/* lend: me -> no holder.  A reclaim that the owner has asked for stays in the word: the
 * core is then reserved for the owner.  release: partner is inv_core_borrow.
 * False when I do not hold it any more (evicted).  The caller then offers the core. */
bool inv_core_lend(struct inv_table *t, unsigned core, unsigned me);

enum inv_reclaim { INV_RECLAIM_GOT, INV_RECLAIM_HELD, INV_RECLAIM_ASKED, INV_RECLAIM_NOT_OWNER };
/* reclaim: the owner takes its core if it has no holder, else asks for it.  GOT: it is the
 * caller's now.  HELD: a thread of this process has it already. */
enum inv_reclaim inv_core_reclaim(struct inv_table *t, unsigned core, unsigned owner);

/* Withdraw a reclaim.  True when the core had been given back meanwhile and has no
 * holder: the caller then takes it (inv_core_borrow) or offers it. */
bool inv_core_reclaim_cancel(struct inv_table *t, unsigned core, unsigned owner);

/* claim: has `core` been handed to a sleeping thread of mine?  Then the caller, and no other thread
 * of this process, has it from now on.  It holds the core or lends it. */
bool inv_core_claim(struct inv_table *t, unsigned core, unsigned me);

/* forgo: `core` was the home of a thread that does not need it any more and has stored
 * INV_NO_CORE there.  Gives it up if it has been handed to me, drops my reclaim, and makes
 * processes fail that are about to hand it to me.  True when it is free: the caller offers it. */
bool inv_core_forgo(struct inv_table *t, unsigned core, unsigned me);

/* evict: holder -> owner, when the reclaim bound has passed.  The caller re-pins the
 * old holder's thread (holder_tid).  False when the owner has changed or the core had no
 * holder.  *evicted receives the slot that lost it. */
bool inv_core_evict(struct inv_table *t, unsigned core, unsigned owner, unsigned *evicted);

/* own: rmd gives the core to a new owner (slot, or -1 for none).  The holder stays; a pending
 * reclaim of the old owner is dropped, and a new one that wants a core has asked for it: the caller
 * offers the core when it has no holder.  Returns the old owner, -1 for none. */
int inv_core_own(struct inv_table *t, unsigned core, int new_owner);

/*
 * withdraw, expel, admit: rmd moves the core between domains.  Withdrawn, it has the owner
 * INV_ELSEWHERE and is asked for: its holder gives it up at its next scheduling point and rings
 * rmd's bell, and no process takes it.  True: it has no holder, as inv_core_is_free says later.
 * expel: the holder does not hold it any more; the caller keeps its thread away.  admit: this
 * domain's, without an owner.
 */
bool inv_core_withdraw(struct inv_table *t, unsigned core);
bool inv_core_is_free(struct inv_table *t, unsigned core);
void inv_core_expel(struct inv_table *t, unsigned core);
void inv_core_admit(struct inv_table *t, unsigned core);

/* Part of inv_slot_reap, for one core.  The slot's `home` must be INV_NO_CORE.  True: the dead
 * process held the core. */
bool inv_core_reap(struct inv_table *t, unsigned core, unsigned dead);

/* seize: rmd takes the core from a holder that cannot give it up (it is stopped, or sleeps): the core has no
 * holder then, and keeps its owner; if the owner is that holder, its reclaim is dropped.  True when
 * the core was held; the caller offers it. */
bool inv_core_seize(struct inv_table *t, unsigned core, unsigned holder);

/*
 * A thread that holds a core of its process's own may sleep in the kernel (a read, a join, a page
 * fault), where no code of ours runs.  rmd then lends the core for it, and returns the core when the
 * thread runs again; the thread knows nothing of either, unless it comes to a scheduling point
 * meanwhile.
 *
 * lend_for: by rmd: `tid`, a thread of the owner `owner`, holds the core and sleeps.  True: the core has
 * no holder now; the caller offers it.  False: the thread has moved on.
 * return_to: by rmd: the core is the thread's again, if the thread does not know yet that it was not.
 * True: it is, and *evicted is the slot that has lost the core, INV_MAX_SLOTS none; holder_tid names the
 * thread when that knows.  False: there is nothing to return any more.
 * end_absence: by the thread itself, which has found that the core is not its process's: no core is
 * returned to it from now on.  current: holder_tid named it until now.  True: it has the core, because
 * it has been returned, is free, or has not been lent at all.
 */
/* The thread that holds the core, 0 unknown: holder_tid, or the one that does not know that it has the
 * core again. */
int32_t inv_core_thread(struct inv_table *t, unsigned core);
bool inv_core_lend_for(struct inv_table *t, unsigned core, unsigned owner, int32_t tid);
bool inv_core_return_to(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                        unsigned *evicted);
bool inv_core_end_absence(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                          bool current);

/* repair: what rmd finds in a word that a process has scribbled over, or that a former rmd has
 * left unfinished.  It gets the owner `name` (slot + 1, INV_NOBODY or INV_ELSEWHERE), for which it
 * is asked as by inv_core_own; a holder that is no member (bit s: slot s is one) goes, and so does
 * a reclaim that no process can have meant.  True when something was wrong; the caller then offers
 * the core. */
bool inv_core_repair(struct inv_table *t, unsigned core, unsigned name,
                     const uint64_t members[INV_SLOT_WORDS]);

/* rescue: wake all threads that a dead process or rmd may have been about to wake, ask for the
 * cores of owners that wait for them, and offer all free cores.  Needless wake-ups are
 * harmless. */
void inv_rescue(struct inv_table *t);

/* offer: a core has become free; wakes a thread that can use it: a thread of the owner that sleeps
 * in MPI and needs this core, else a parked worker of the owner when it asked for the core, else of
 * `me` when it wants, else of the other wanting processes in turn.  The worker is pinned to the
 * core while it is still parked, so that it wakes there.  `me` may be INV_MAX_SLOTS: no process
 * (rmd). */
void inv_core_offer(struct inv_table *t, unsigned core, unsigned me);

/* ring: tell a process that what its MPI waits are for may have happened.  No system
 * call when none of its threads sleeps.  Where its main thread needs its home core, the
 * core is reclaimed on its behalf and the thread is woken when it is there. */
void inv_ring(struct inv_table *t, unsigned whom);

/* wants: does any process but the one in slot `me` want a core? */
bool inv_others_want(struct inv_table *t, unsigned me);
/* Say whether the process in slot `me` wants a core; ask what it has said. */
void inv_want_set(struct inv_table *t, unsigned me, bool wants);
bool inv_want_get(struct inv_table *t, unsigned me);

/* parked workers: take one of a process (highest bit first), and return its number; -1 none.  The
 * taker must wake it with inv_parked_ring. */
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
 * have been about to wake.  *freed, if not NULL, becomes the number of cores that it held.  The
 * slot may be used again afterwards.
 */
void inv_slot_reap(struct inv_table *t, unsigned dead, unsigned *freed);

/* Pin a kernel thread of this domain to a core (no-op when emulated).  tid 0 is the
 * caller.  Returns 0 or -errno. */
int inv_pin(struct inv_table *t, int tid, int core);

#endif
