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

void rmd_curve_slow(struct rmd_curve *c, double e)
{
    for (unsigned k = 0; k < c->segments; k++) {
        c->cores[k] /= e;
        c->slope[k] *= e;
    }
}

double rmd_curve_enough(const struct rmd_curve *c)
{
    unsigned last = c->segments - 1;
    return c->slope[last] <= 0 ? c->cores[last] : HUGE_VAL;
}
