/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* estimate.h - how much longer the program would have taken if no core had moved, for
 * `invade --report`.  Nothing happens where there is no record. */
#ifndef SHIM_ESTIMATE_H
#define SHIM_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* The members of the job are known; nothing has been computed yet. */
void shim_estimate_start(uint64_t now_ticks);

/* All of these by the thread that called MPI_Init.  This rank is in the call in which an iteration
 * ends, for which until now its main thread was useful for useful_ns, the process for core_ns of
 * core time. */
void shim_estimate_arrival(uint64_t now_ticks, double useful_ns, double core_ns);
/* It has ended.  waited: just now, with a wait; else then, and what came after is in it too. */
void shim_estimate_iteration(uint64_t now_ticks, double useful_ns, double core_ns, bool waited);

#endif
