/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_throughput.c - ownership that makes the most of the scalability graphs S_i that the
 * processes announce: maximise sum S_i(D_i) (Schreiber et al., 5.3.3, equations 5
 * and 6), every process a group of its own in greedy.c.
 */
#include "rmd/policy/policy.h"
#include "rmd/policy/rank.h"

void rmd_policy_throughput(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena;
    rmd_policy_workload(s, target);
    rmd_ranks_invalidate(s);
    if (!s->nprocs || rmd_scarce(s))
        return; /* nothing to choose */
    struct rmd_ranks ranks = rmd_ranks_cache(s, RMD_ALONE, RMD_WHOLE, &arena);
    unsigned *share = rmd_arena_alloc(&arena, s->nprocs, sizeof *share);
    double *weight = rmd_arena_alloc(&arena, s->nprocs, sizeof *weight);
    rmd_works(s, ranks.member, s->nprocs, weight);
    for (unsigned i = 0; i < s->nprocs; i++) {
        share[i] = target[i];
        weight[i] /= rmd_delivered_of(&s->needs[i]); /* as policy workload */
    }
    const struct rmd_greedy_options how = {.cores = s->ncores, .weight = weight, .cap = share};
    rmd_greedy_allocate(&ranks, &how, target, arena);
}

/* sum S_i(D_i); without any graph there are only the workloads. */
double rmd_gain_throughput(const struct rmd_snapshot *s, const unsigned *target)
{
    double now = 0, then = 0;
    bool known = false;
    struct rmd_arena arena;
    if (!s->nprocs)
        return 0;
    struct rmd_ranks ranks = rmd_ranks_cached(s, RMD_ALONE, RMD_WHOLE, &arena);
    for (unsigned i = 0; i < s->nprocs; i++) {
        const struct rmd_curve *c = &ranks.rank[i].curve;
        known |= ranks.rank[i].known;
        now += rmd_curve_at(c, s->needs[i].owned);
        then += rmd_curve_at(c, target[i]);
    }
    return !known ? rmd_gain_workload(s, target) : then > 0 ? 1 - now / then : 0;
}
