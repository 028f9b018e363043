/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_workload.c - ownership in proportion to the workloads W that the processes
 * announce: D_i = ceil(R W_i / sum W) - alpha_i with alpha_i in {0, 1} (Schreiber et al.,
 * 5.3.3), alpha chosen by the largest remainders.  Equal shares are
 * the same with all W alike.  A process whose cores deliver the part E of a core each counts as
 * one with the work W / E.
 */
#include "rmd/policy/apportion.h"
#include "rmd/policy/level.h"
#include "rmd/policy/policy.h"

#include <math.h>

bool rmd_scarce(const struct rmd_snapshot *s)
{
    unsigned long minima = 0;
    for (unsigned i = 0; i < s->nprocs; i++)
        minima += rmd_range_of(s, i).lo;
    return minima > s->ncores;
}

/* Fewer cores than processes: one each to those that own one now, then in order. */
static void give_one_each(const struct rmd_snapshot *s, unsigned *target)
{
    unsigned left = s->ncores;
    for (unsigned i = 0; i < s->nprocs; i++) {
        target[i] = s->needs[i].owned && left ? 1 : 0;
        left -= target[i];
    }
    for (unsigned i = 0; i < s->nprocs && left; i++) {
        left -= !target[i];
        target[i] = 1;
    }
}

/* Relative to the largest, so that the sum of huge workloads does not overflow.  Away from zero:
 * ratios beyond 10^9 mean nothing. */
void rmd_works(const struct rmd_snapshot *s, const unsigned *member, unsigned count, double *work)
{
    double largest = 0, sum = 0;
    unsigned known = 0;
    for (unsigned k = 0; k < count; k++)
        if (rmd_workload_known(&s->needs[member[k]]))
            largest = rmd_most(largest, s->needs[member[k]].workload);
    for (unsigned k = 0; k < count; k++) {
        const struct rmd_need *need = &s->needs[member[k]];
        work[member[k]] = 0;
        if (rmd_workload_known(need)) {
            sum += work[member[k]] = rmd_most(need->workload / largest, 1e-9);
            known++;
        }
    }
    for (unsigned k = 0; k < count; k++)
        if (work[member[k]] <= 0)
            work[member[k]] = known ? sum / known : 1;
}

/* Shares in proportion to the weights. */
static void apportion_cores(const struct rmd_snapshot *s, const double *weight, unsigned *target,
                            struct rmd_arena arena)
{
    if (s->ncores < s->nprocs) {
        give_one_each(s, target);
        return;
    }
    struct rmd_part *part = rmd_arena_alloc(&arena, s->nprocs, sizeof *part);
    bool scarce = rmd_scarce(s); /* then the minima become the maxima */
    for (unsigned i = 0; i < s->nprocs; i++) {
        struct rmd_range r = rmd_range_of(s, i);
        part[i] = (struct rmd_part){.weight = weight[i],
                                    .lo = scarce ? 1 : r.lo,
                                    .hi = scarce ? r.lo : r.hi,
                                    .owned = s->needs[i].owned};
    }
    rmd_apportion(part, s->nprocs, s->ncores, target, arena);
}

void rmd_policy_equal(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena = {s->arena};
    double *weight = rmd_arena_alloc(&arena, s->nprocs, sizeof *weight);
    for (unsigned i = 0; i < s->nprocs; i++)
        weight[i] = 1;
    apportion_cores(s, weight, target, arena);
}

void rmd_policy_workload(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena = {s->arena};
    double *weight = rmd_arena_alloc(&arena, s->nprocs, sizeof *weight);
    unsigned *all = rmd_arena_alloc(&arena, s->nprocs, sizeof *all);
    for (unsigned i = 0; i < s->nprocs; i++)
        all[i] = i;
    rmd_works(s, all, s->nprocs, weight);
    for (unsigned i = 0; i < s->nprocs; i++)
        weight[i] /= rmd_delivered_of(&s->needs[i]);
    apportion_cores(s, weight, target, arena);
}

/* The gain of a move is unknown for a process without a known, current workload. */
double rmd_gain_workload(const struct rmd_snapshot *s, const unsigned *target)
{
    double now = 0, then = 0;
    for (unsigned i = 0; i < s->nprocs; i++) {
        const struct rmd_need *need = &s->needs[i];
        bool known = rmd_workload_known(need);
        if (!known && target[i] != need->owned)
            return HUGE_VAL;
        if (!known || !need->owned || !target[i])
            continue;
        double work = need->workload / rmd_delivered_of(need);
        now = rmd_most(now, work / need->owned);
        then = rmd_most(then, work / target[i]);
    }
    return now > 0 ? 1 - then / now : 0;
}
