/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy.h - how many cores each process should own.
 *
 * A policy is a pure function from a snapshot of needs to a distribution D (target[i]
 * cores for process i): no I/O, no clock, no locks, no memory.  So it can be tested
 * with random input, simulated at sizes that no machine has, and read.  Which cores
 * they are is placement.h's matter.
 *
 * Every policy keeps to these, and the tests try to break them:
 *   - sum D = min(cores, sum of the maxima);
 *   - each process gets at least one core while there are as many cores as processes;
 *   - min_cores <= D <= max_cores, unless the minima ask for more cores than there are;
 *     then every D is between one and its minimum;
 *   - a larger workload never gets fewer cores, the other workloads being the same.
 */
#ifndef RMD_POLICY_H
#define RMD_POLICY_H

#include "invasive.h"

#include <float.h>
#include <stdbool.h>

/* What is known of one process. */
struct rmd_need {
    unsigned min_cores; /* 0 is taken as 1 */
    unsigned max_cores; /* 0: no limit; below min_cores it is taken as min_cores */
    unsigned owned;     /* now; breaks ties, so that cores do not move for nothing */
    double workload;    /* > 0; 0, negative or not finite: unknown */
    struct inv_scalability scalability; /* valid (invasive.h) */
};

struct rmd_snapshot {
    unsigned ncores, nprocs;
    const struct rmd_need *needs; /* nprocs of them */
};

enum { RMD_MOST_PROCS = 4096 }; /* for which policy_throughput.c has room */

typedef void rmd_policy(const struct rmd_snapshot *snapshot, unsigned *target);

/* Equal shares within everyone's range; the workloads are not looked at. */
rmd_policy rmd_policy_equal;

/* Shares in proportion to the workloads, largest remainder, within everyone's range.  A
 * process of unknown workload counts as one of average workload. */
rmd_policy rmd_policy_workload;

/*
 * The largest sum of the speed-ups S_i(D_i), within everyone's range: cores are given one by
 * one to the process whose S rises most by it, which finds the best since S is concave.  Where
 * several rise alike the one with fewer cores for its workload gets it.  The rules above hold,
 * but for the last: the workload decides ties only.
 */
rmd_policy rmd_policy_throughput;

/*
 * Is it worth moving cores to get from what is owned to `target`?  Yes when what is
 * owned breaks a constraint or leaves cores unowned; else when the time of the slowest
 * process, modelled as workload / cores, gets better by more than RMD_WORTHWHILE.  Measured
 * workloads are noisy, every move costs somebody a warm cache, and what is left of the
 * imbalance is met by lending.
 */
#define RMD_WORTHWHILE 0.08
bool rmd_policy_worthwhile(const struct rmd_snapshot *snapshot, const unsigned *target);

/* The range of process i, with one core at least and all cores at most. */
struct rmd_range {
    unsigned lo, hi;
};
struct rmd_range rmd_range_of(const struct rmd_snapshot *snapshot, unsigned i);

/*
 * The common part: shares in proportion to weights.  The weight of a process is its
 * workload / unit when the unit is not 0 and the workload is known, else `unknown` (> 0).
 */
struct rmd_scale {
    double unit, unknown;
};
void rmd_apportion(const struct rmd_snapshot *snapshot, struct rmd_scale scale, unsigned *target);

static inline bool rmd_workload_known(const struct rmd_need *need)
{
    return need->workload > 0 && need->workload <= DBL_MAX;
}

#endif
