/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * apportion.c - the method of largest remainders under ranges (Schreiber et al., 5.3.3).
 *
 * A larger weight_i lowers the level and so every other quota, and raises q_i: therefore no process
 * loses a core by weighing more.
 */
#include "rmd/policy/apportion.h"
#include "rmd/policy/level.h"
#include "libinvasive/base/assertion.h"

#include <stdbool.h>

/* Quotas are sums and products of doubles: what is this close to a whole number is one. */
static const double whole = 1e-7;

struct parts {
    const struct rmd_part *parts;
    unsigned n;
};

static double clamp_quota(const struct rmd_part *p, double q)
{
    return q < p->lo ? p->lo : q > p->hi ? p->hi : q;
}

static struct rmd_slope sum_at(const void *of, double level)
{
    const struct parts *all = of;
    struct rmd_slope sum = {0, 0};
    for (unsigned i = 0; i < all->n; i++) {
        const struct rmd_part *p = &all->parts[i];
        double q = level * p->weight;
        sum.value += clamp_quota(p, q);
        sum.slope += q >= p->lo && q < p->hi ? p->weight : 0;
    }
    return sum;
}

static double find_level(const struct parts *all, double cores)
{
    double weights = 0, high = 0;
    for (unsigned i = 0; i < all->n; i++) {
        weights += all->parts[i].weight;
        high = rmd_most(high, all->parts[i].hi / all->parts[i].weight);
    }
    if (sum_at(all, high).value <= cores)
        return high;
    return rmd_level(sum_at, all, cores, cores / weights, high);
}

struct remainder {
    double rest;
    unsigned index;
};

static bool is_before(struct remainder a, struct remainder b)
{
    return a.rest != b.rest ? a.rest > b.rest : a.index < b.index;
}

static void swap_remainders(struct remainder *a, struct remainder *b)
{
    struct remainder t = *a;
    *a = *b;
    *b = t;
}

/* The middle one of the first, the middle and the last goes to the end. */
static struct remainder choose_pivot(struct remainder *r, unsigned last)
{
    struct remainder *a = &r[0], *b = &r[last / 2], *c = &r[last];
    bool ab = is_before(*a, *b), bc = is_before(*b, *c), ac = is_before(*a, *c);
    swap_remainders(ab == bc ? b : ab == ac ? c : a, c);
    return *c;
}

/* Reorder so that the first k of n are the k largest (quickselect). */
static void select_largest(struct remainder *r, unsigned n, unsigned k)
{
    inv_assert(k <= n);
    while (k > 0 && k < n) {
        struct remainder pivot = choose_pivot(r, n - 1);
        unsigned larger = 0;
        for (unsigned i = 0; i < n - 1; i++)
            if (is_before(r[i], pivot))
                swap_remainders(&r[i], &r[larger++]);
        swap_remainders(&r[larger], &r[n - 1]);
        if (k <= larger) {
            n = larger;
        } else {
            r += larger + 1;
            n -= larger + 1;
            k -= larger + 1;
        }
    }
}

void rmd_apportion(const struct rmd_part *parts, unsigned n, unsigned cores, unsigned *share,
                   struct rmd_arena arena)
{
    struct parts all = {parts, n};
    struct remainder *rest = rmd_arena_alloc(&arena, n, sizeof *rest);
    double level = find_level(&all, cores);
    unsigned given = 0, open = 0;
    for (unsigned i = 0; i < n; i++) {
        double q = clamp_quota(&parts[i], level * parts[i].weight);
        share[i] = (unsigned)(q + whole);
        given += share[i];
        double more = q - share[i];
        if (share[i] + whole < parts[i].hi)
            rest[open++] = (struct remainder){more + (parts[i].owned > share[i] ? whole : 0), i};
    }
    unsigned left = given < cores ? cores - given : 0;
    if (left < open)
        select_largest(rest, open, left);
    else
        left = open;
    inv_assert(left <= open && open <= n);
    for (unsigned i = 0; i < left; i++)
        share[rest[i].index]++;
}
