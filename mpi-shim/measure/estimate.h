/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* estimate.h - how much longer the program would have taken if no core had moved, for
 * `invade --report`.  Nothing happens where there is no record. */
#ifndef SHIM_ESTIMATE_H
#define SHIM_ESTIMATE_H

#include "libinvasive/process.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHIM_ESTIMATE_PENDING = 16 };

/* What a rank has computed until a time, in ns: t (oversubscribed: core time) and u. */
struct shim_sum {
    double alone, useful;
};

/* The state of an estimate; begins as zeroes.  Of the thread that called MPI_Init. */
struct shim_estimate {
    double own;     /* cores of a rank; less than one: oversubscribed */
    struct shim_sum now; /* of this rank */
    /* ticks: nothing had been computed; its last sample; and one in the call in which the iteration
     * ends, 0 none */
    uint64_t began, noted, arrived;
    uint64_t cpu_start_ns;

    /* of domain rank 0: intervals that are to be judged when all have a sample after them */
    uint64_t pending[SHIM_ESTIMATE_PENDING]; /* ticks: ends of these intervals */
    uint64_t judged;                         /* ticks: what has been judged ends here */
    unsigned count;                          /* of pending[] */
    struct shim_sum then[INV_MAX_SLOTS];     /* by domain rank, until `judged` */
    double slowest_ns, unmoved_ns, judged_ns; /* as in the record */
};

/* The ranks in this domain are known; nothing has been computed yet. */
void shim_estimate_start(struct shim_estimate *e, uint64_t now_ticks);

/* All of these by the thread that called MPI_Init.  This rank is in the call in which an iteration
 * ends, for which until now its main thread was useful for useful_ns, the process for core_ns of
 * core time. */
void shim_estimate_arrival(struct shim_estimate *e, uint64_t now_ticks, double useful_ns,
                           double core_ns);
/* It has ended.  waited: just now, with a wait; else then, and what came after is in it too. */
void shim_estimate_iteration(struct shim_estimate *e, uint64_t now_ticks, double useful_ns,
                             double core_ns, bool waited);

#endif
