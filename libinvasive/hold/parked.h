/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parked.h - parked workers: they have nothing to do, and lenders can wake them.
 */
#ifndef INV_PARKED_H
#define INV_PARKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Park the calling thread (it holds no core) until a lender or inv_parked_wake wakes it, or `*word`
 * is not `expected` any more at the time of parking.  Then it may hold a core.  False, at once:
 * INV_PARKED_MAX workers are parked already, and no waker would find it here. */
bool inv_worker_park(_Atomic uint32_t *word, uint32_t expected);
/* Wake one parked worker of this process and give it the hold (INV_HOLD_NONE: none; it looks for
 * work itself).  False when none is parked; the hold stays the caller's. */
bool inv_parked_wake(int hold);
/* The same without a hold: it wakes on that core (INV_NO_CORE: where it fell asleep). */
bool inv_parked_wake_unheld(int core);
/* Number of parked workers. */
unsigned inv_parked_count(void);
/* For the child of a fork: no thread of the parent is here. */
void inv_parked_forget(void);

#endif
