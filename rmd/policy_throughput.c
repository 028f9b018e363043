/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_throughput.c - ownership that makes the most of the scalability graphs S_i that the
 * processes announce: maximise sum S_i(D_i).  Each process begins with the least it may have;
 * core after core goes to the largest gain S_i(D_i + 1) - S_i(D_i) (papers/
 * invasive-compute-balancing.txt 5.3.3, equations 5 and 6).  S_i being concave and monotone,
 * no other distribution has a larger sum.  Of a process without a graph it is known only what
 * its workload is: S(c) = min(c, share), with the share of the workload policy.
 */
#include "policy.h"
#include "scalability.h"

static double gain(const struct rmd_need *need, unsigned share, unsigned cores)
{
    if (!need->scalability.point[0].cores)
        return cores < share;
    return inv_scalability_at(&need->scalability, cores + 1) -
           inv_scalability_at(&need->scalability, cores);
}

/* Gains that differ by rounding are the same. */
static const double alike = 1e-6;

/* Who gets the next core; nprocs when everyone has its maximum. */
static unsigned next_of(const struct rmd_snapshot *s, const unsigned *share, const unsigned *target)
{
    unsigned who = s->nprocs;
    double best = 0, hunger = 0;
    for (unsigned i = 0; i < s->nprocs; i++) {
        const struct rmd_need *need = &s->needs[i];
        if (target[i] >= rmd_range_of(s, i).hi)
            continue;
        double g = gain(need, share[i], target[i]);
        double h = rmd_workload_known(need) ? need->workload / target[i] : 0;
        if (who == s->nprocs || g > best + alike || (g > best - alike && h > hunger)) {
            who = i;
            best = g;
            hunger = h;
        }
    }
    return who;
}

void rmd_policy_throughput(const struct rmd_snapshot *s, unsigned *target)
{
    unsigned share[RMD_MOST_PROCS];
    unsigned long least = 0;
    rmd_policy_workload(s, target);
    for (unsigned i = 0; i < s->nprocs; i++)
        least += rmd_range_of(s, i).lo;
    if (least > s->ncores || s->nprocs > RMD_MOST_PROCS)
        return; /* nothing to choose */
    for (unsigned i = 0; i < s->nprocs; i++) {
        share[i] = target[i];
        target[i] = rmd_range_of(s, i).lo;
    }
    for (unsigned long left = s->ncores - least; left; left--) {
        unsigned who = next_of(s, share, target);
        if (who == s->nprocs)
            return;
        target[who]++;
    }
}
