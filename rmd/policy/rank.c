/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rank.c - see rank.h; and how much of a core a process's cores deliver. */
#include "rmd/policy/rank.h"
#include "rmd/policy/level.h"
#include "libinvasive/base/assertion.h"

#include <math.h>
#include <string.h>

/* < nprocs */
static unsigned group_of(const struct rmd_snapshot *s, enum rmd_grouping grouping, unsigned i)
{
    unsigned job = s->needs[i].job;
    return grouping == RMD_ALONE                      ? i
           : grouping == RMD_ONE_GROUP || !s->nprocs ? 0
           : job < s->nprocs                         ? job
                                                     : job % s->nprocs; /* a division takes long */
}

static void group_members(const struct rmd_snapshot *s, enum rmd_grouping grouping,
                          struct rmd_ranks *r, struct rmd_arena arena)
{
    unsigned n = s->nprocs;
    unsigned *end = rmd_arena_alloc(&arena, n + 1, sizeof *end); /* of the jobs, counted */
    memset(end, 0, (n + 1) * sizeof *end);
    for (unsigned i = 0; i < n; i++)
        end[group_of(s, grouping, i)]++;
    r->ngroups = 0;
    for (unsigned j = 0, at = 0; j < n; j++) {
        unsigned count = end[j];
        if (count)
            r->group[r->ngroups++] = (struct rmd_group){.first = at, .count = count};
        end[j] = at;
        at += count;
    }
    inv_assert(r->ngroups <= n && (r->ngroups > 0) == (n > 0));
    for (unsigned i = 0; i < n; i++)
        r->member[end[group_of(s, grouping, i)]++] = i;
}

/* Core time that an iteration of process i takes for each unit of work; 0: not known. */
static double core_time_of_work(const struct rmd_snapshot *s, const struct rmd_ranks *r, unsigned i)
{
    const struct rmd_need *need = &s->needs[i];
    bool known = need->iteration_s > 0 && need->iteration_s <= DBL_MAX && need->iteration_cores;
    if (!known || !rmd_workload_known(need))
        return 0;
    return need->iteration_s * rmd_curve_at(&r->rank[i].curve, need->iteration_cores) / r->work[i];
}

/*
 * A core of a process delivers what rmd knows of the machine or, by_iterations, less: a rank that
 * needs more core time for a unit of work than the best rank of its job has cores that deliver
 * less.  (Acun et al., IV.F: the application's own imbalance is in the workloads, so the remaining
 * one is from outside.) At least a tenth: a larger loss is no interference but an error of
 * measurement.
 */
static void judge_cores(const struct rmd_snapshot *s, struct rmd_ranks *r,
                        const struct rmd_group *g, bool by_iterations)
{
    const unsigned *m = &r->member[g->first];
    double best = HUGE_VAL;
    for (unsigned k = 0; k < g->count && by_iterations; k++) {
        double x = core_time_of_work(s, r, m[k]);
        if (x > 0)
            best = rmd_least(best, x);
    }
    for (unsigned k = 0; k < g->count; k++) {
        const struct rmd_need *need = &s->needs[m[k]];
        double told = rmd_delivered_of(need);
        double x = by_iterations ? core_time_of_work(s, r, m[k]) : 0, seen = x > 0 ? best / x : 1;
        r->rank[m[k]].delivered = (struct rmd_delivered){
            .cores = seen < told ? need->iteration_cores : need->owned,
            .part = rmd_most(rmd_least(seen, told), 0.1)};
    }
}

/* Further cores come from the others. */
static void slow_curves(struct rmd_ranks *r)
{
    double cores = 0, whole = 0;
    for (unsigned i = 0; i < r->nranks; i++) {
        cores += r->rank[i].delivered.cores;
        whole += r->rank[i].delivered.cores * r->rank[i].delivered.part;
    }
    for (unsigned i = 0; whole < cores && i < r->nranks; i++) {
        struct rmd_delivered *d = &r->rank[i].delivered;
        d->further = rmd_elsewhere(cores, whole, d);
        rmd_curve_slow(&r->rank[i].curve, d);
    }
}

double rmd_elsewhere(double cores, double whole, const struct rmd_delivered *d)
{
    double others = cores - d->cores;
    return others > 0 ? (whole - d->cores * d->part) / others : 1;
}

static void sum_up_group(struct rmd_ranks *r, struct rmd_group *g)
{
    for (unsigned k = 0; k < g->count; k++) {
        unsigned i = r->member[g->first + k];
        struct rmd_rank *rank = &r->rank[i];
        double enough = ceil(rmd_curve_enough(&rank->curve));
        rank->useful = enough < rank->lo ? rank->lo
                       : enough < rank->hi ? (unsigned)enough
                                           : rank->hi;
        inv_assert(rank->lo <= rank->useful && rank->useful <= rank->hi);
        g->lo += rank->lo;
        g->hi += rank->hi;
        g->useful += rank->useful;
        g->owned += rank->owned;
        rank->work = r->work[i];
        g->work += rank->work;
        g->known |= rank->known;
    }
}

struct rmd_ranks rmd_ranks_of(const struct rmd_snapshot *s, enum rmd_grouping grouping, enum rmd_slowed slowed,
                              struct rmd_arena *arena)
{
    unsigned n = s->nprocs;
    struct rmd_ranks r = {.nranks = n};
    r.rank = rmd_arena_alloc(arena, n, sizeof *r.rank);
    r.group = rmd_arena_alloc(arena, n, sizeof *r.group);
    r.member = rmd_arena_alloc(arena, n, sizeof *r.member);
    r.work = rmd_arena_alloc(arena, n, sizeof *r.work);
    for (unsigned i = 0; i < n; i++) {
        struct rmd_range range = rmd_range_of(s, i);
        rmd_curve_of(&s->needs[i].scalability, &r.rank[i].curve);
        r.rank[i].known = s->needs[i].scalability.point[0].cores > 0;
        r.rank[i].delivered = (struct rmd_delivered){0, 1, 1};
        r.rank[i].lo = range.lo;
        r.rank[i].hi = range.hi;
        r.rank[i].owned = s->needs[i].owned;
    }
    group_members(s, grouping, &r, *arena);
    for (unsigned j = 0; j < r.ngroups; j++) {
        rmd_works(s, &r.member[r.group[j].first], r.group[j].count, r.work);
        if (slowed)
            judge_cores(s, &r, &r.group[j], slowed == RMD_AS_SEEN);
    }
    if (slowed)
        slow_curves(&r);
    for (unsigned j = 0; j < r.ngroups; j++)
        sum_up_group(&r, &r.group[j]);
    return r;
}

/* Is at the beginning of the arena. */
struct cache {
    bool valid;
    struct rmd_ranks ranks;
    struct rmd_arena after;
};

struct rmd_ranks rmd_ranks_cache(const struct rmd_snapshot *s, enum rmd_grouping grouping,
                                 enum rmd_slowed slowed, struct rmd_arena *arena)
{
    *arena = (struct rmd_arena){s->arena};
    struct cache *cache = rmd_arena_alloc(arena, 1, sizeof *cache);
    cache->ranks = rmd_ranks_of(s, grouping, slowed, arena);
    cache->after = *arena;
    cache->valid = true;
    return cache->ranks;
}

void rmd_ranks_invalidate(const struct rmd_snapshot *s)
{
    ((struct cache *)s->arena)->valid = false;
}

struct rmd_ranks rmd_ranks_cached(const struct rmd_snapshot *s, enum rmd_grouping grouping,
                                  enum rmd_slowed slowed, struct rmd_arena *arena)
{
    const struct cache *cache = s->arena;
    if (!s->decided || !cache->valid)
        return rmd_ranks_cache(s, grouping, slowed, arena);
    *arena = cache->after;
    return cache->ranks;
}

double rmd_slowest(const struct rmd_ranks *r, const struct rmd_group *g, const unsigned *cores)
{
    double slowest = 0;
    for (unsigned k = 0; k < g->count; k++) {
        unsigned i = r->member[g->first + k];
        if (cores[i])
            slowest = rmd_most(slowest, r->work[i] / rmd_curve_at(&r->rank[i].curve, cores[i]));
    }
    return slowest;
}
