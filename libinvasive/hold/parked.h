/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parked.h - parked workers: they have nothing to do, and lenders can wake them.
 */
#ifndef INV_PARKED_H
#define INV_PARKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Parks the calling thread, which holds no core, until a lender or inv_parked_wake wakes it; not if
 * `*word` is not `expected` at the time of parking.  The thread may hold a core when this returns.
 * False, at once: INV_PARKED_MAX workers are parked already, and no waker would find the caller. */
bool inv_worker_park(_Atomic uint32_t *word, uint32_t expected);
/* Wakes one parked worker of this process and gives it the hold (INV_HOLD_NONE: no hold; the worker
 * looks for one itself).  False when none is parked; the hold stays the caller's.  Any thread. */
bool inv_parked_wake(int hold);
/* The same without a hold: the worker wakes on `core` (INV_NO_CORE: where it fell asleep). */
bool inv_parked_wake_unheld(int core);
/* Number of parked workers of this process. */
unsigned inv_parked_count(void);
/* For the child of a fork: no thread of the parent is here. */
void inv_parked_forget(void);

#endif
