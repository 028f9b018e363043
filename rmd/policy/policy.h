/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy.h - how many cores each process should own.
 *
 * A policy is a pure function from a snapshot of needs to a distribution D (target[i]
 * cores for process i): no I/O, no clock, no locks, no memory but the arena of the snapshot.  So it
 * can be tested with random input, simulated at sizes that no machine has, and read.  placement.h
 * chooses which cores they are.
 *
 * Every policy keeps to these, and the tests try to break them:
 *   - sum D = min(cores, sum of the maxima), or less where the policy saves cores;
 *   - each process gets at least one core while there are as many cores as processes;
 *   - min_cores <= D <= max_cores, unless the minima ask for more cores than there are;
 *     then every D is between one and its minimum.
 *
 * Formulas are in rmd-policies(7); each policy_*.c says how it finds its D.
 */
#ifndef RMD_POLICY_H
#define RMD_POLICY_H

#include "invasive.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>

/* What is known of one process.  The caller of the policy fills it in. */
struct rmd_need {
    unsigned min_cores; /* 0 is taken as 1 */
    unsigned max_cores; /* 0: no limit; below min_cores it is taken as min_cores */
    unsigned owned;     /* cores that it owns now; breaks ties, so that no core moves for nothing */
    unsigned priority;  /* of its launch: limit.h.  Policies do not look at it */
    unsigned job;       /* number of its job, < nprocs; ranks of one job have the same */
    double workload;    /* in a unit that the job's ranks share; <= 0 or not finite: unknown */
    double delivered;   /* of a core, by its cores on average, measured: 0 < e <= 1; else unknown */
    double iteration_s; /* announced computing time of an iteration, seconds; 0: unknown */
    unsigned iteration_cores; /* cores that it owned when it announced iteration_s */
    struct inv_scalability scalability; /* any points: their concave hull counts (curve.h) */
};

/* What the operator may change. */
struct rmd_tuning {
    double energy_loss; /* throughput that policy energy may give away, 0..1 */
    double move_cost_s; /* what the move of a core costs, in core seconds */
    double within_s;    /* time within which a move must have paid for that */
};
#define RMD_TUNING {.energy_loss = 0.05, .move_cost_s = 0.001, .within_s = 0.1}

struct rmd_snapshot {
    unsigned ncores, nprocs;
    const struct rmd_need *needs; /* nprocs of them */
    void *arena;                  /* RMD_ARENA_BYTES(nprocs) bytes, aligned as by malloc */
    struct rmd_tuning tuning;
    bool decided; /* for gain: decide was called for this snapshot, and the arena is unchanged */
};
#define RMD_ARENA_BYTES(nprocs) (((size_t)(nprocs) + 1) * 1024)

typedef void rmd_policy_decide(const struct rmd_snapshot *snapshot, unsigned *target);
/* The part by which the policy's goal gets better (of time, or of cores that are saved) if the
 * processes own `target` in place of what they own now.  0 or less: it does not. */
typedef double rmd_policy_gain(const struct rmd_snapshot *snapshot, const unsigned *target);

struct rmd_policy {
    const char *name;
    const char *about; /* one line for people */
    rmd_policy_decide *decide;
    rmd_policy_gain *gain;
    bool looks_at_delivery; /* rmd_need.delivered must include what a hypervisor steals */
    bool saves_cores;       /* leaves cores unowned that no process needs */
};

/* All policies, the default first; the last element has no name.  (policies.c) */
extern const struct rmd_policy rmd_policies[];
/* The policy of this name; NULL: there is none. */
const struct rmd_policy *rmd_policy_named(const char *name);
/* "a, b or c", for messages. */
struct rmd_policy_names {
    char text[256];
};
struct rmd_policy_names rmd_policy_names(void);

/*
 * rmd_policy_worthwhile - whether to move cores to get from the owned ones to `target`.  Yes when a
 * number of owned cores is outside its range, or cores are unowned that a process shall have.  Else
 * the policy's gain g must be more than RMD_WORTHWHILE, and g * cores * within_s core seconds at
 * least the cost of the moves.  Measured workloads are noisy, and every move costs a process a warm
 * cache.  Lending handles the rest of an imbalance.  (policy_worth.c)
 */
#define RMD_WORTHWHILE 0.08
bool rmd_policy_worthwhile(const struct rmd_policy *policy, const struct rmd_snapshot *snapshot,
                           const unsigned *target);

/* What a core of the process delivers, 0.1 to 1; 1 where that is not known.  Less is no slow core but a
 * mistake. */
static inline double rmd_delivered_of(const struct rmd_need *need)
{
    double e = need->delivered;
    return !(e > 0 && e <= 1) ? 1 : e < 0.1 ? 0.1 : e;
}

/* Shares in proportion to workload / what a core of the process delivers, by largest remainder,
 * within each process's range.  An unknown workload counts as an average one.  A larger workload
 * never gets fewer cores if all others stay the same. */
rmd_policy_decide rmd_policy_workload;
/* Equal shares within each process's range; the workloads are not used. */
rmd_policy_decide rmd_policy_equal;
rmd_policy_gain rmd_gain_workload; /* the slowest process, workload / cores */

/*
 * The largest sum of the speed-ups S_i(D_i), within each process's range.  Processes whose
 * speed-ups rise alike share in proportion to their workloads.  Of a process without a graph only
 * the workload is known: S(c) = min(c, share), with the share of policy `workload`.
 */
rmd_policy_decide rmd_policy_throughput;
rmd_policy_gain rmd_gain_throughput;

/* The least time, workload / S_i(D_i), of the slowest of all processes; then of the next slowest,
 * and so on.  A process's cores count for what they deliver. */
rmd_policy_decide rmd_policy_makespan;
rmd_policy_gain rmd_gain_makespan;

/*
 * Two levels.  A job on d cores, its ranks' finish times being equal, has the speed-up
 * S_J(d) = sum W / max(W_i / S_i(D_i)).  jobs: the largest sum of S_J; fair: as many cores for
 * each job as for any other, as far as it can use them; energy: as jobs with the fewest cores
 * that have 1 - energy_loss of the best sum.
 */
rmd_policy_decide rmd_policy_jobs, rmd_policy_fair, rmd_policy_energy;
rmd_policy_gain rmd_gain_jobs, rmd_gain_fair, rmd_gain_energy;

/* As fair, but a process's cores count for what they deliver. */
rmd_policy_decide rmd_policy_interference;
rmd_policy_gain rmd_gain_interference;

/* The range of process i, with one core at least and all cores at most. */
struct rmd_range {
    unsigned lo, hi;
};
static inline struct rmd_range rmd_range_of(const struct rmd_snapshot *s, unsigned i)
{
    const struct rmd_need *need = &s->needs[i];
    struct rmd_range r = {need->min_cores, need->max_cores};
    if (r.lo < 1)
        r.lo = 1;
    if (r.lo > s->ncores)
        r.lo = s->ncores;
    if (r.hi == 0 || r.hi > s->ncores)
        r.hi = s->ncores;
    if (r.hi < r.lo)
        r.hi = r.lo;
    return r;
}

/* Writes the workloads of the processes member[0 .. count), relative to the largest, to work[] (by
 * process); for an unknown workload the mean of the others. */
void rmd_works(const struct rmd_snapshot *snapshot, const unsigned *member, unsigned count,
               double *work);
/* Are there fewer cores than the sum of the minima?  Policies without a rule of their own for that
 * give the distribution of `workload` or `equal`. */
bool rmd_scarce(const struct rmd_snapshot *snapshot);

static inline bool rmd_workload_known(const struct rmd_need *need)
{
    return need->workload > 0 && need->workload <= DBL_MAX;
}

#endif
