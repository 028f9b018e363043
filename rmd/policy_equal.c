/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_equal.c - equal shares, and the apportionment that all policies share.
 *
 * Apportionment under ranges: find the level x at which the clamped quotas
 * q_i = clamp(x * weight_i, lo_i, hi_i) add up to the number of cores (they grow with
 * x, so bisection finds it), give everyone floor(q_i), and the cores that are left one
 * each to the largest remainders.  With no range in the way this is the method of
 * largest remainders (papers/invasive-compute-balancing.txt 5.3.3).  A larger weight_i lowers x
 * and so every other quota, and raises q_i: therefore nobody loses a core by needing more.
 */
#include "policy.h"

#include <math.h>

struct rmd_range rmd_range_of(const struct rmd_snapshot *s, unsigned i)
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

/* When the minima together are more than there is, they become the maxima. */
static struct rmd_range squeezed(const struct rmd_snapshot *s, unsigned i, bool squeeze)
{
    struct rmd_range r = rmd_range_of(s, i);
    if (squeeze) {
        r.hi = r.lo;
        r.lo = 1;
    }
    return r;
}

static double quota(double level, double weight, struct rmd_range r)
{
    double q = level * weight;
    return q < r.lo ? r.lo : q > r.hi ? r.hi : q;
}

/* Fewer cores than processes: one each to those that own one now, then in order. */
static void one_each(const struct rmd_snapshot *s, unsigned *target)
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

/* Away from zero: ratios beyond 10^9 mean nothing, and would spoil the bisection. */
static double weight(const struct rmd_snapshot *s, struct rmd_scale scale, unsigned i)
{
    if (scale.unit <= 0 || !rmd_workload_known(&s->needs[i]))
        return scale.unknown;
    return fmax(s->needs[i].workload / scale.unit, 1e-9);
}

static double find_level(const struct rmd_snapshot *s, struct rmd_scale scale, bool squeeze)
{
    double low = 0, high = (double)s->ncores * 1e9;
    for (int step = 0; step < 120; step++) {
        double mid = (low + high) / 2, sum = 0;
        for (unsigned i = 0; i < s->nprocs; i++)
            sum += quota(mid, weight(s, scale, i), squeezed(s, i, squeeze));
        if (sum < s->ncores)
            low = mid;
        else
            high = mid;
    }
    return high;
}

void rmd_apportion(const struct rmd_snapshot *s, struct rmd_scale scale, unsigned *target)
{
    if (s->ncores < s->nprocs) {
        one_each(s, target);
        return;
    }
    unsigned long minima = 0;
    for (unsigned i = 0; i < s->nprocs; i++)
        minima += rmd_range_of(s, i).lo;
    bool squeeze = minima > s->ncores;
    double level = find_level(s, scale, squeeze);

    unsigned left = s->ncores;
    for (unsigned i = 0; i < s->nprocs; i++) {
        struct rmd_range r = squeezed(s, i, squeeze);
        target[i] = (unsigned)floor(quota(level, weight(s, scale, i), r) + 1e-7);
        left -= target[i];
    }
    while (left) { /* fewer rounds than processes, see the remainders */
        double best = -1;
        unsigned who = s->nprocs;
        for (unsigned i = 0; i < s->nprocs; i++) {
            struct rmd_range r = squeezed(s, i, squeeze);
            double rest = quota(level, weight(s, scale, i), r) - target[i];
            if (target[i] >= r.hi || rest <= -1e-6)
                continue; /* full, or has had its remainder's core */
            if (s->needs[i].owned > target[i])
                rest += 1e-7; /* a tie: whoever has the core keeps it */
            if (rest > best) {
                best = rest;
                who = i;
            }
        }
        if (who == s->nprocs)
            return; /* everyone has its maximum */
        target[who]++;
        left--;
    }
}

void rmd_policy_equal(const struct rmd_snapshot *s, unsigned *target)
{
    rmd_apportion(s, (struct rmd_scale){.unit = 0, .unknown = 1}, target);
}

/* Must process i move, whatever it gains? */
static bool must_move(const struct rmd_snapshot *s, unsigned i)
{
    const struct rmd_need *need = &s->needs[i];
    struct rmd_range r = rmd_range_of(s, i);
    return !rmd_workload_known(need) || need->owned < r.lo || need->owned > r.hi;
}

bool rmd_policy_worthwhile(const struct rmd_snapshot *s, const unsigned *target)
{
    double now = 0, then = 0;
    unsigned owned = 0, wanted = 0;
    for (unsigned i = 0; i < s->nprocs; i++) {
        const struct rmd_need *need = &s->needs[i];
        owned += need->owned;
        wanted += target[i];
        if (target[i] != need->owned && must_move(s, i))
            return true;
        if (rmd_workload_known(need) && need->owned && target[i]) {
            now = fmax(now, need->workload / need->owned);
            then = fmax(then, need->workload / target[i]);
        }
    }
    return owned != wanted || then < (1 - RMD_WORTHWHILE) * now;
}
