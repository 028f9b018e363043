/* SPDX-License-Identifier: GPL-3.0-or-later */
/* curve.c - concave hulls of scalability graphs, by the monotone chain (Andrew 1979): a point
 * that the line from the one before to the one after passes above is not in the hull. */
#include "curve.h"

#include <math.h>
#include <stdbool.h>

struct point {
    double cores, speed;
    double slope; /* from the point before */
};

static bool usable(struct inv_scalability_point p, double last_cores)
{
    return p.cores > last_cores && p.speedup > 0 && isfinite(p.speedup);
}

static double slope(const struct point *a, double cores, double speed)
{
    return (speed - a->speed) / (cores - a->cores);
}

/* The hull of the origin and the usable points; returns how many it has. */
static unsigned hull(const struct inv_scalability *graph, struct point *h)
{
    unsigned n = 1;
    double last_cores = 0;
    h[0] = (struct point){0, 0, 0};
    for (unsigned i = 0; i < INV_SCALABILITY_POINTS && graph->point[i].cores; i++) {
        if (!usable(graph->point[i], last_cores))
            continue;
        double cores = graph->point[i].cores;
        double speed = fmin((double)graph->point[i].speedup, cores);
        double m = slope(&h[n - 1], cores, speed);
        while (n > 1 && m >= h[n - 1].slope - RMD_ALIKE)
            m = slope(&h[--n - 1], cores, speed);
        h[n++] = (struct point){cores, speed, m};
        last_cores = cores;
    }
    return n;
}

struct rmd_curve rmd_curve_of(const struct inv_scalability *graph)
{
    struct rmd_curve c;
    struct point h[INV_SCALABILITY_POINTS + 1];
    unsigned n = graph->point[0].cores ? hull(graph, h) : 1;
    c.segments = 0;
    for (unsigned k = 0; k + 1 < n; k++) {
        double m = h[k + 1].slope;
        c.cores[k] = h[k].cores;
        c.speed[k] = h[k].speed;
        c.slope[k] = m > RMD_ALIKE ? m : 0;
        c.segments++;
        if (!(m > RMD_ALIKE))
            break;
    }
    if (c.segments == 0 || c.slope[0] <= 0) { /* nothing that could be */
        c.segments = 1;
        c.cores[0] = c.speed[0] = 0;
        c.slope[0] = 1;
    }
    return c;
}

double rmd_delivered_by(const struct rmd_delivered *d, double cores)
{
    double more = cores - d->cores;
    return more <= 0 ? cores * d->part : d->cores * d->part + more * d->further;
}

double rmd_cores_delivering(const struct rmd_delivered *d, double whole)
{
    double has = d->cores * d->part;
    return whole <= has ? whole / d->part : d->cores + (whole - has) / d->further;
}

void rmd_curve_slow(struct rmd_curve *c, const struct rmd_delivered *d)
{
    const struct rmd_curve old = *c;
    c->segments = 0;
    for (unsigned k = 0; k < old.segments; k++) {
        double from = rmd_cores_delivering(d, old.cores[k]);
        double to = k + 1 < old.segments ? rmd_cores_delivering(d, old.cores[k + 1]) : HUGE_VAL;
        unsigned at = c->segments++;
        c->cores[at] = from;
        c->speed[at] = old.speed[k];
        c->slope[at] = old.slope[k] * (from < d->cores ? d->part : d->further);
        if (from < d->cores && d->cores < to) { /* its own end within the segment */
            at = c->segments++;
            c->cores[at] = d->cores;
            c->speed[at] = c->speed[at - 1] + c->slope[at - 1] * (d->cores - from);
            c->slope[at] = old.slope[k] * d->further;
        }
    }
}

double rmd_curve_enough(const struct rmd_curve *c)
{
    unsigned last = c->segments - 1;
    return c->slope[last] <= 0 ? c->cores[last] : HUGE_VAL;
}
