/* SPDX-License-Identifier: GPL-3.0-or-later */
/* curve.c - concave hulls of scalability graphs, by the monotone chain (Andrew 1979): a point
 * that the line from the one before to the one after passes above is not in the hull. */
#include "rmd/policy/curve.h"
#include "rmd/policy/level.h"
#include "libinvasive/base/assertion.h"

#include <math.h>
#include <stdbool.h>

struct point {
    double cores, speed;
    double slope; /* from the point before */
};

static bool is_usable(struct inv_scalability_point p, double last_cores)
{
    return p.cores > last_cores && p.speedup > 0 && isfinite(p.speedup);
}

static double slope_between(const struct point *a, double cores, double speed)
{
    return (speed - a->speed) / (cores - a->cores);
}

/* The hull of the origin and the usable points; returns how many it has. */
static unsigned build_hull(const struct inv_scalability *graph, struct point *h)
{
    unsigned n = 1;
    double last_cores = 0;
    h[0] = (struct point){0, 0, 0};
    for (unsigned i = 0; i < INV_SCALABILITY_POINTS && graph->point[i].cores; i++) {
        if (!is_usable(graph->point[i], last_cores))
            continue;
        double cores = graph->point[i].cores;
        double speed = rmd_least((double)graph->point[i].speedup, cores);
        double m = slope_between(&h[n - 1], cores, speed);
        while (n > 1 && m >= h[n - 1].slope - RMD_ALIKE)
            m = slope_between(&h[--n - 1], cores, speed);
        h[n++] = (struct point){cores, speed, m};
        last_cores = cores;
    }
    return n;
}

void rmd_curve_of(const struct inv_scalability *graph, struct rmd_curve *c)
{
    struct point h[INV_SCALABILITY_POINTS + 1];
    unsigned n = graph->point[0].cores ? build_hull(graph, h) : 1;
    c->segments = 0;
    inv_assert(n >= 1 && n <= INV_SCALABILITY_POINTS + 1);
    for (unsigned k = 0; k + 1 < n; k++) {
        double m = h[k + 1].slope > RMD_ALIKE ? h[k + 1].slope : 0;
        c->at[c->segments++] = (struct rmd_segment){h[k].cores, h[k].speed, m};
        if (m <= 0)
            break;
    }
    if (c->segments == 0 || c->at[0].slope <= 0) { /* nothing that could be */
        c->segments = 1;
        c->at[0] = (struct rmd_segment){0, 0, 1};
    }
}

double rmd_cores_delivering(const struct rmd_delivered *d, double whole)
{
    double has = d->cores * d->part;
    return whole <= has ? whole / d->part : d->cores + (whole - has) / d->further;
}

void rmd_curve_slow(struct rmd_curve *c, const struct rmd_delivered *d)
{
    const struct rmd_curve old = *c;
    inv_assert(old.segments > 0);
    c->segments = 0;
    for (unsigned k = 0; k < old.segments; k++) {
        const struct rmd_segment *was = &old.at[k];
        struct rmd_segment *is = &c->at[c->segments++];
        double from = rmd_cores_delivering(d, was->cores);
        double to = k + 1 < old.segments ? rmd_cores_delivering(d, was[1].cores) : HUGE_VAL;
        is->cores = from;
        is->speed = was->speed;
        is->slope = was->slope * (from < d->cores ? d->part : d->further);
        /* Its own end within the segment; on a flat one it would be taken for where that begins. */
        if (was->slope > 0 && from < d->cores && d->cores < to)
            c->at[c->segments++] =
                (struct rmd_segment){d->cores, is->speed + is->slope * (d->cores - from),
                                     was->slope * d->further};
    }
}

double rmd_curve_enough(const struct rmd_curve *c)
{
    inv_assert(c->segments > 0);
    unsigned last = c->segments - 1;
    return c->at[last].slope <= 0 ? c->at[last].cores : HUGE_VAL;
}
