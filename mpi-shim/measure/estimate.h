/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* estimate.h - how much longer the program would have taken if no core had moved, for
 * `invade --report`.  The functions do nothing if the process keeps no record. */
#ifndef SHIM_ESTIMATE_H
#define SHIM_ESTIMATE_H

#include "libinvasive/process.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHIM_ESTIMATE_PENDING = 16 };

/* What a rank has computed until a time, in ns. */
struct shim_sum {
    double unmoved; /* sum of t of estimate.c; oversubscribed: core time */
    double useful; /* sum of u */
};

/* The state of an estimate; begins as zeroes.  Belongs to the thread that called MPI_Init. */
struct shim_estimate {
    double own;     /* cores of a rank; less than one: oversubscribed */
    struct shim_sum now; /* of this rank */
    /* times in ticks: of shim_estimate_start; of this rank's last sample; of its sample in the call
     * in which the present iteration ends, 0: none */
    uint64_t began, noted, arrived;
    uint64_t cpu_start_ns;

    /* of domain rank 0: intervals that are judged when all ranks have a sample after them */
    uint64_t pending[SHIM_ESTIMATE_PENDING]; /* ticks: ends of these intervals */
    uint64_t judged;                         /* ticks: what has been judged ends here */
    unsigned count;                          /* of pending[] */
    struct shim_sum then[INV_MAX_SLOTS];     /* by domain rank, until `judged` */
    double slowest_ns, unmoved_ns, judged_ns; /* as in the record */
};

/* Begins the estimate: the ranks in this domain are known, and nothing has been computed yet. */
void shim_estimate_start(struct shim_estimate *e, uint64_t now_ticks);

/* All of these are called by the thread that called MPI_Init.  This rank is in the call in which an
 * iteration ends.  Since the iteration began the main thread was useful for useful_ns, and the
 * process used core_ns of core time. */
void shim_estimate_arrival(struct shim_estimate *e, uint64_t now_ticks, double useful_ns,
                           double core_ns);
/* The iteration has ended.  waited: at this moment, with a wait.  Else it ended in the call of
 * shim_estimate_arrival, and both times include what the rank has computed since. */
void shim_estimate_iteration(struct shim_estimate *e, uint64_t now_ticks, double useful_ns,
                             double core_ns, bool waited);

#endif
