/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * measure.c - from measurements to a scalability graph.
 *
 * Measurements (c, rate) are collected in bins of about the same c, each a weighted mean, so
 * that one lucky iteration is no point of the graph.  Three steps make a graph of the bins:
 *
 *   1. monotone: neighbours of which the one with more cores is slower are pooled, weighted
 *      by their measurements (pool adjacent violators);
 *   2. concave: the least concave function above the origin and the points, which is their
 *      upper hull.  In the terms of step 1 the slopes are pooled where a later one is steeper,
 *      weighted by the cores that they span;
 *   3. S(c) = rate(c) / rate(1) at whole numbers of cores, interpolated.  Below the fewest
 *      cores that were measured speed-up is taken as perfect, since the hull begins at the
 *      origin; beyond the most, the last segment goes on (invasive.h).
 */
#include "mpi-shim/measure/measure.h"
#include "libinvasive/base/assertion.h"

#include <math.h>

enum { TRUSTED = 2, MOST_WEIGHT = 16, STALE = 512 };

struct point {
    double cores, rate, weight;
};

/* Quarters of a core up to four, then eight to an octave. */
static unsigned bin_of(double cores)
{
    double b = cores <= 4 ? cores * 4 - 4 : 12 + 4 * log2(cores / 4);
    return b < 0 ? 0 : b >= SHIM_SCALABILITY_BINS - 1 ? SHIM_SCALABILITY_BINS - 1 : (unsigned)b;
}

void shim_scalability_add(struct shim_scalability *s, double cores, double rate)
{
    if (!isfinite(cores) || !isfinite(rate) || cores <= 0 || rate <= 0)
        return;
    struct shim_scalability_bin *b = &s->bin[bin_of(cores)];
    s->added++;
    if (s->added - b->latest > STALE)
        b->weight = 0; /* the measurements are old: the work has changed since */
    b->latest = s->added;
    if (b->weight < MOST_WEIGHT)
        b->weight++;
    inv_assert(b->weight >= 1 && b->weight <= MOST_WEIGHT);
    double share = 1 / b->weight;
    b->cores = b->weight == 1 ? cores : b->cores + (cores - b->cores) * share;
    b->rate = b->weight == 1 ? rate : b->rate + (rate - b->rate) * share;
}

/* The points of the bins that have measurements, in order of cores: the mean of a bin is within
 * it. */
static unsigned collect_points(const struct shim_scalability *s, struct point *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SHIM_SCALABILITY_BINS; i++) {
        const struct shim_scalability_bin *b = &s->bin[i];
        if (b->weight >= TRUSTED && s->added - b->latest <= STALE)
            out[n++] = (struct point){b->cores, b->rate, b->weight};
    }
    return n;
}

/* One point in the place of two, of the weight of both. */
static struct point pool_points(struct point a, struct point b)
{
    double w = a.weight + b.weight;
    return (struct point){(a.cores * a.weight + b.cores * b.weight) / w,
                          (a.rate * a.weight + b.rate * b.weight) / w, w};
}

static unsigned make_monotone(struct point *p, unsigned n)
{
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        p[m++] = p[i];
        while (m > 1 && p[m - 1].rate < p[m - 2].rate) {
            p[m - 2] = pool_points(p[m - 2], p[m - 1]);
            m--;
        }
    }
    inv_assert(m <= n && (m > 0) == (n > 0));
    return m;
}

static double slope(struct point a, struct point b)
{
    return (b.rate - a.rate) / (b.cores - a.cores);
}

/* Reduces the points, of which p[0] is the origin, to their upper hull.  Returns how many are
 * left. */
static unsigned make_concave(struct point *p, unsigned n)
{
    unsigned m = 1;
    for (unsigned i = 1; i < n; i++) {
        while (m > 1 && slope(p[m - 1], p[i]) >= slope(p[m - 2], p[m - 1]))
            m--;
        p[m++] = p[i];
    }
    inv_assert(m <= n);
    return m;
}

/* The rate with `cores` cores by the hull of n >= 2 points; its last segment goes on without
 * end. */
static double rate_at(const struct point *p, unsigned n, double cores)
{
    unsigned i = 1;
    inv_assert(n >= 2);
    while (i < n - 1 && p[i].cores < cores)
        i++;
    return p[i - 1].rate + slope(p[i - 1], p[i]) * (cores - p[i - 1].cores);
}

/* The k-th of the whole numbers from `low` to `high` that the graph has points at: all of
 * them if there is room, else denser at the lower end. */
static unsigned cores_of_point(unsigned k, unsigned low, unsigned high)
{
    if (high - low < INV_SCALABILITY_POINTS)
        return low + k;
    double step = pow((double)(high - low + 1), 1.0 / (INV_SCALABILITY_POINTS - 1));
    unsigned cores = low + (unsigned)(pow(step, k) - 1 + 0.5);
    if (cores < low + k)
        cores = low + k;
    return k == INV_SCALABILITY_POINTS - 1 || cores > high ? high : cores;
}

bool shim_scalability_graph(const struct shim_scalability *s, unsigned ncores,
                            struct inv_scalability *graph)
{
    struct point p[SHIM_SCALABILITY_BINS + 1] = {{0, 0, 0}};
    unsigned n = make_monotone(p + 1, collect_points(s, p + 1)) + 1;
    *graph = (struct inv_scalability){0};
    if (n < 2 || ncores < 1)
        return false;
    double low = p[1].cores, high = p[n - 1].cores;
    n = make_concave(p, n);
    unsigned first = low < 1.5 ? 1 : (unsigned)fmin(low + 0.5, ncores);
    unsigned last = high < 1.5 ? 1 : (unsigned)fmin(high + 0.5, ncores);
    inv_assert(first >= 1 && first <= last && last <= ncores);
    double one = rate_at(p, n, 1);
    for (unsigned k = 0; k < INV_SCALABILITY_POINTS && k <= last - first; k++) {
        unsigned cores = cores_of_point(k, first, last);
        inv_assert(cores >= first && cores <= last);
        inv_assert(k == 0 || cores > graph->point[k - 1].cores);
        /* rounding must not make the graph steeper than the hull */
        graph->point[k].cores = cores;
        graph->point[k].speedup = (float)fmin(rate_at(p, n, cores) / one, cores);
    }
    return true;
}
