/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workload.h - useful time and waiting time by iteration (workload.c).
 */
#ifndef SHIM_WORKLOAD_H
#define SHIM_WORKLOAD_H

#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/measure/phase.h"
#include "mpi-shim/measure/site.h"

#pragma GCC visibility push(hidden)

/* The calling thread is at a call that may wait for other ranks (called before the wait), or at a
 * test that has succeeded.  Iterations are found in the sequence of such calls. */
void shim_workload_find_iteration(const void *call_site);
/* Written by the thread that called MPI_Init only (workload.c). */
extern struct shim_workload {
    /* Twice the number of iterations begun.  A site's `noted` is this number when the site was
     * passed in this iteration already, plus 1 at the site where iterations begin.  Most calls need
     * no more. */
    uint32_t iteration;
    struct shim_phase phase;
} shim_workload;
/* Has this call nothing new to tell shim_workload_find_iteration?  True also in threads that are
 * not measured. */
SHIM_INLINE bool shim_workload_noted(struct shim_site *site, const void *call_site)
{
    if (!shim_thread.measured)
        return true;
    uint32_t noted = site->noted ^ shim_workload.iteration;
    if (site->where != call_site || noted > 1)
        return false;
    return !noted || shim_phase_pass(&shim_workload.phase);
}
/* shim_workload_find_iteration, if the call may be news. */
static inline void shim_workload_call(const void *call_site)
{
    if (__builtin_expect(!shim_workload_noted(shim_site(call_site), call_site), 0))
        shim_workload_find_iteration(call_site);
}
/* A wait has begun at `start` (ticks).  If the call before has not waited and ended an iteration,
 * the iteration ends now, at `start`. */
void shim_workload_settle(uint64_t start);

/* From now on the calling thread is measured, until shim_workload_stop. */
void shim_workload_start(void);
/* The calling thread lends its core for a wait. */
void shim_workload_lends(void);
/* The calling thread has a core again. */
void shim_workload_regained(void);
/* The calling thread waited from `start` to `end` (ticks); slept: with its core lent. */
void shim_workload_waited(uint64_t start, uint64_t end, bool slept);
/* The calling thread is measured no longer; what is known goes to the report. */
void shim_workload_stop(void);

#pragma GCC visibility pop
#endif
