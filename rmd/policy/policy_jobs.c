/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_jobs.c - two levels: cores to jobs, by one of several goals; then to the ranks of each
 * job, so that they finish together (balance.c).  With all processes as one job that is policy
 * makespan.
 *
 * A job's gain is computed as if cores could be divided, though its ranks own whole ones: core time
 * that rounding leaves idle in one rank is borrowed by another one.
 */
#include "rmd/policy/apportion.h"
#include "rmd/policy/level.h"
#include "rmd/policy/policy.h"
#include "rmd/policy/rank.h"

#include <math.h>

/* If there are no more cores than the sum of the minima, there is nothing to choose: decides at
 * once. */
static bool decide_if_scarce(const struct rmd_snapshot *s, unsigned *target)
{
    if (s->nprocs && !rmd_scarce(s))
        return false;
    rmd_policy_equal(s, target);
    rmd_ranks_invalidate(s);
    return true;
}

static void balance_all(const struct rmd_ranks *r, const unsigned *share, unsigned *target,
                        struct rmd_arena arena)
{
    for (unsigned j = 0; j < r->ngroups; j++) {
        const struct rmd_group *g = &r->group[j];
        if (g->count == 1)
            target[r->member[g->first]] = share[j];
        else
            rmd_balance(r, g, share[j], target, arena);
    }
}

void rmd_policy_makespan(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena;
    if (decide_if_scarce(s, target))
        return;
    struct rmd_ranks r = rmd_ranks_cache(s, RMD_ONE_GROUP, RMD_AS_TOLD, &arena);
    unsigned share = r.group[0].hi < s->ncores ? r.group[0].hi : s->ncores;
    balance_all(&r, &share, target, arena);
}

static unsigned *owned_of(const struct rmd_snapshot *s, struct rmd_arena *arena)
{
    unsigned *owned = rmd_arena_alloc(arena, s->nprocs, sizeof *owned);
    for (unsigned i = 0; i < s->nprocs; i++)
        owned[i] = s->needs[i].owned;
    return owned;
}

double rmd_gain_makespan(const struct rmd_snapshot *s, const unsigned *target)
{
    struct rmd_arena arena;
    if (!s->nprocs)
        return 0;
    struct rmd_ranks r = rmd_ranks_cached(s, RMD_ONE_GROUP, RMD_AS_TOLD, &arena);
    const unsigned *owned = owned_of(s, &arena);
    double now = rmd_slowest(&r, &r.group[0], owned);
    return now > 0 ? 1 - rmd_slowest(&r, &r.group[0], target) / now : 0;
}

/* --- cores to jobs */

/*
 * Shares in proportion to the weights (NULL: all alike), at first only as far as the jobs can use
 * the cores.
 */
static void share_cores(const struct rmd_snapshot *s, const struct rmd_ranks *r,
                        const double *weight, unsigned *share, struct rmd_arena arena)
{
    struct rmd_part *part = rmd_arena_alloc(&arena, r->ngroups, sizeof *part);
    unsigned long useful = 0;
    for (unsigned j = 0; j < r->ngroups; j++)
        useful += r->group[j].useful;
    bool plenty = useful <= s->ncores;
    for (unsigned j = 0; j < r->ngroups; j++) {
        const struct rmd_group *g = &r->group[j];
        part[j] = (struct rmd_part){.weight = weight ? weight[j] : 1,
                                    .lo = plenty ? g->useful : g->lo,
                                    .hi = plenty ? g->hi : g->useful,
                                    .owned = g->owned};
    }
    rmd_apportion(part, r->ngroups, s->ncores, share, arena);
}

void rmd_policy_fair(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena;
    if (decide_if_scarce(s, target))
        return;
    struct rmd_ranks r = rmd_ranks_cache(s, RMD_BY_JOB, RMD_WHOLE, &arena);
    unsigned *share = rmd_arena_alloc(&arena, r.ngroups, sizeof *share);
    share_cores(s, &r, NULL, share, arena);
    balance_all(&r, share, target, arena);
}

/* A job without a graph is taken to gain from cores up to its fair share. */
static void maximise_speed(const struct rmd_snapshot *s, double give_away, unsigned *target)
{
    struct rmd_arena arena;
    if (decide_if_scarce(s, target))
        return;
    struct rmd_ranks r = rmd_ranks_cache(s, RMD_BY_JOB, RMD_WHOLE, &arena);
    unsigned *share = rmd_arena_alloc(&arena, r.ngroups, sizeof *share);
    unsigned *fair = rmd_arena_alloc(&arena, r.ngroups, sizeof *fair);
    double *weight = rmd_arena_alloc(&arena, r.ngroups, sizeof *weight);
    share_cores(s, &r, NULL, fair, arena);
    for (unsigned j = 0; j < r.ngroups; j++)
        weight[j] = 1;
    const struct rmd_greedy_options how = {
        .cores = s->ncores, .weight = weight, .cap = fair, .give_away = give_away};
    rmd_greedy_allocate(&r, &how, share, arena);
    balance_all(&r, share, target, arena);
}

void rmd_policy_jobs(const struct rmd_snapshot *s, unsigned *target)
{
    maximise_speed(s, 0, target);
}

void rmd_policy_energy(const struct rmd_snapshot *s, unsigned *target)
{
    maximise_speed(s, fmin(fmax(s->tuning.energy_loss, 0), 0.99), target);
}

struct deliveries {
    const struct rmd_ranks *ranks;
    struct rmd_delivered *by_job;
};

/* Cores that deliver `whole` cores to the job, or as many as it can use. */
static double cores_of_job(const struct deliveries *all, unsigned job, double whole)
{
    const struct rmd_group *g = &all->ranks->group[job];
    return rmd_least(rmd_most(rmd_cores_delivering(&all->by_job[job], whole), g->lo), g->useful);
}

static struct rmd_slope cores_of_all(const void *of, double whole)
{
    const struct deliveries *all = of;
    struct rmd_slope sum = {0, 0};
    for (unsigned j = 0; j < all->ranks->ngroups; j++) {
        const struct rmd_delivered *d = &all->by_job[j];
        double cores = cores_of_job(all, j, whole);
        sum.value += cores;
        if (cores > all->ranks->group[j].lo && cores < all->ranks->group[j].useful)
            sum.slope += 1 / (cores < d->cores ? d->part : d->further);
    }
    return sum;
}

static void deliveries_of(const struct deliveries *all)
{
    double cores = 0, whole = 0;
    for (unsigned j = 0; j < all->ranks->ngroups; j++) {
        const struct rmd_group *g = &all->ranks->group[j];
        struct rmd_delivered *d = &all->by_job[j];
        double own = 0;
        *d = (struct rmd_delivered){0, 1, 1};
        for (unsigned k = 0; k < g->count; k++) {
            const struct rmd_delivered *m = &all->ranks->rank[all->ranks->member[g->first + k]]
                                                 .delivered;
            d->cores += m->cores;
            own += m->cores * m->part;
        }
        d->part = d->cores > 0 ? own / d->cores : 1;
        cores += d->cores;
        whole += own;
    }
    for (unsigned j = 0; j < all->ranks->ngroups; j++)
        all->by_job[j].further = rmd_elsewhere(cores, whole, &all->by_job[j]);
}

/* Every job gets cores that deliver the same, as far as it can use them. */
void rmd_policy_interference(const struct rmd_snapshot *s, unsigned *target)
{
    struct rmd_arena arena;
    if (decide_if_scarce(s, target))
        return;
    struct rmd_ranks r = rmd_ranks_cache(s, RMD_BY_JOB, RMD_AS_SEEN, &arena);
    unsigned *share = rmd_arena_alloc(&arena, r.ngroups, sizeof *share);
    double *weight = rmd_arena_alloc(&arena, r.ngroups, sizeof *weight);
    struct deliveries all = {&r, rmd_arena_alloc(&arena, r.ngroups, sizeof *all.by_job)};
    deliveries_of(&all);
    double most = 10.0 * s->ncores, level = most;
    if (cores_of_all(&all, most).value > s->ncores)
        level = rmd_level(cores_of_all, &all, s->ncores, (double)s->ncores / r.ngroups, most);
    for (unsigned j = 0; j < r.ngroups; j++)
        weight[j] = rmd_most(cores_of_job(&all, j, level), 1);
    bool plenty = level >= most; /* what is left is shared alike */
    share_cores(s, &r, plenty ? NULL : weight, share, arena);
    balance_all(&r, share, target, arena);
}

/* --- what moves would gain */

struct outcome {
    double now, then; /* sum S_J */
    double most;      /* of a job's time, saved */
    unsigned long owned, wanted;
};

static void add_job(struct outcome *o, const struct rmd_ranks *r, const struct rmd_group *g,
                    const unsigned *owned, const unsigned *target)
{
    double now = rmd_slowest(r, g, owned), then = rmd_slowest(r, g, target);
    if (now > 0)
        o->now += g->work / now;
    if (then > 0)
        o->then += g->work / then;
    o->most = rmd_most(o->most, now > 0 ? 1 - then / now : 1);
    for (unsigned k = 0; k < g->count; k++) {
        o->owned += owned[r->member[g->first + k]];
        o->wanted += target[r->member[g->first + k]];
    }
}

static struct outcome outcome_of(const struct rmd_snapshot *s, enum rmd_slowed slowed, const unsigned *target)
{
    struct outcome o = {0, 0, 0, 0, 0};
    struct rmd_arena arena;
    if (!s->nprocs)
        return o;
    struct rmd_ranks r = rmd_ranks_cached(s, RMD_BY_JOB, slowed, &arena);
    const unsigned *owned = owned_of(s, &arena);
    for (unsigned j = 0; j < r.ngroups; j++)
        add_job(&o, &r, &r.group[j], owned, target);
    return o;
}

static double part_saved(double now, double then)
{
    return now > 0 ? 1 - then / now : 0;
}

double rmd_gain_jobs(const struct rmd_snapshot *s, const unsigned *target)
{
    struct outcome o = outcome_of(s, RMD_WHOLE, target);
    return part_saved(o.then, o.now); /* time is 1 / speed */
}

/* The largest part of its time that a job saves, whatever the others lose: its fair share is due to
 * it. */
double rmd_gain_fair(const struct rmd_snapshot *s, const unsigned *target)
{
    return outcome_of(s, RMD_WHOLE, target).most;
}

double rmd_gain_interference(const struct rmd_snapshot *s, const unsigned *target)
{
    return outcome_of(s, RMD_AS_SEEN, target).most;
}

/* Time where it has become too slow, else cores. */
double rmd_gain_energy(const struct rmd_snapshot *s, const unsigned *target)
{
    struct outcome o = outcome_of(s, RMD_WHOLE, target);
    return rmd_most(part_saved(o.then, o.now), part_saved((double)o.owned, (double)o.wanted));
}
