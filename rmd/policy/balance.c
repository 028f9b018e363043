/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * balance.c - equal finish times within a group, in whole cores.
 *
 * The optimum results from giving core after core to the slowest process: nothing else can make the
 * slowest faster.  For each reachable speed v, these steps pass through the state in which every
 * process has just enough cores for v.  So most of the steps can be left out.
 *
 * With c_i(v) cores, process i has the speed v, and rounding c_i(v) up takes less than one more
 * core.  Therefore the speed at which all c_i(v) add up to `cores` less the number of processes is
 * reachable.  Only the cores that are left then are given one by one, from a heap.  O(n log n),
 * whatever the number of cores.
 */
#include "rmd/policy/apportion.h"
#include "rmd/policy/heap.h"
#include "rmd/policy/level.h"
#include "rmd/policy/rank.h"

/* Up to so many cores for each process one by one from the beginning: finding the speed takes
 * longer. */
enum { FEW = 4 };

struct set {
    const struct rmd_ranks *ranks;
    const struct rmd_group *group;
};

static const struct rmd_rank *member_at(const struct set *set, unsigned k)
{
    return &set->ranks->rank[set->ranks->member[set->group->first + k]];
}

/* Cores with which the process does its work at speed v (1 / time), as far as it can. */
static struct rmd_slope cores_for(const struct rmd_rank *r, double v)
{
    const struct rmd_curve *c = &r->curve;
    double speed = v * r->work;
    unsigned k = 0; /* as rmd_curve_segment */
    for (unsigned i = 1; i < c->segments; i++)
        k += c->at[i].speed <= speed;
    bool flat = c->at[k].slope <= 0;
    double cores = c->at[k].cores + (flat ? 0 : (speed - c->at[k].speed) / c->at[k].slope);
    if (cores < r->lo)
        return (struct rmd_slope){r->lo, 0};
    if (cores >= r->useful)
        return (struct rmd_slope){r->useful, 0};
    return (struct rmd_slope){cores, flat ? 0 : r->work / c->at[k].slope};
}

static struct rmd_slope all_cores_for(const void *of, double v)
{
    const struct set *set = of;
    struct rmd_slope sum = {0, 0};
    for (unsigned k = 0; k < set->group->count; k++) {
        struct rmd_slope one = cores_for(member_at(set, k), v);
        sum.value += one.value;
        sum.slope += one.slope;
    }
    return sum;
}

/* A speed that all processes can have with whole cores, near to the best. */
static double safe_speed(const struct set *set, unsigned cores)
{
    const struct rmd_group *g = set->group;
    if (cores <= g->count || cores - g->count <= g->lo + (unsigned)FEW * g->count)
        return 0;
    double high = 0;
    for (unsigned k = 0; k < g->count; k++) {
        const struct rmd_rank *r = member_at(set, k);
        high = rmd_most(high, rmd_curve_at(&r->curve, r->useful) / r->work);
    }
    double goal = cores - g->count;
    if (all_cores_for(set, high).value <= goal)
        return high;
    return rmd_level(all_cores_for, set, goal, goal / g->work, high);
}

/* The slowest that can still be made faster gets the next core.  Returns what is left. */
static unsigned give_one_by_one(const struct set *set, unsigned left, unsigned *target,
                                struct rmd_arena arena)
{
    const unsigned *member = &set->ranks->member[set->group->first];
    struct rmd_heap_item *heap = rmd_arena_alloc(&arena, set->group->count, sizeof *heap);
    unsigned n = 0;
    for (unsigned k = 0; k < set->group->count; k++) {
        const struct rmd_rank *r = member_at(set, k);
        unsigned has = target[member[k]];
        if (has < r->useful)
            heap[n++] = (struct rmd_heap_item){.key = r->work / rmd_curve_at(&r->curve, has),
                                               .number = member[k],
                                               .preferred = r->owned > has};
    }
    rmd_heap_make(heap, n);
    for (; left && n; left--) {
        struct rmd_heap_item *top = &heap[0];
        const struct rmd_rank *r = &set->ranks->rank[top->number];
        unsigned has = ++target[top->number];
        top->key = has < r->useful ? r->work / rmd_curve_at(&r->curve, has) : -1;
        top->preferred = r->owned > has;
        if (has >= r->useful)
            rmd_heap_pop(heap, &n);
        else
            rmd_heap_sink(heap, n, 0);
    }
    return left;
}

/* Gives the cores that make no process faster, in proportion to the work. */
static void give_useless_cores(const struct set *set, unsigned cores, unsigned *target,
                               struct rmd_arena arena)
{
    const unsigned n = set->group->count, *member = &set->ranks->member[set->group->first];
    struct rmd_part *part = rmd_arena_alloc(&arena, n, sizeof *part);
    unsigned *share = rmd_arena_alloc(&arena, n, sizeof *share);
    for (unsigned k = 0; k < n; k++) {
        const struct rmd_rank *r = member_at(set, k);
        part[k] = (struct rmd_part){r->work, target[member[k]], r->hi, r->owned};
    }
    rmd_apportion(part, n, cores, share, arena);
    for (unsigned k = 0; k < n; k++)
        target[member[k]] = share[k];
}

/* x > -1 */
static unsigned round_up(double x)
{
    unsigned below = (unsigned)x;
    return below + (x > below);
}

void rmd_balance(const struct rmd_ranks *ranks, const struct rmd_group *group, unsigned cores,
                 unsigned *target, struct rmd_arena arena)
{
    const struct set set = {ranks, group};
    const unsigned *member = &ranks->member[group->first];
    double v = safe_speed(&set, cores);
    unsigned given = 0;
    for (unsigned k = 0; k < group->count; k++) {
        unsigned c = v > 0 ? round_up(cores_for(member_at(&set, k), v).value - 1e-7)
                           : member_at(&set, k)->lo;
        target[member[k]] = c;
        given += c;
    }
    if (given < cores && give_one_by_one(&set, cores - given, target, arena))
        give_useless_cores(&set, cores, target, arena);
}
