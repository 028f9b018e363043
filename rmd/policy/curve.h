/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * curve.h - a scalability graph as the policies use it: the smallest monotone and concave
 * function that is nowhere below the announced points, S(c) <= c.  Measured points are noisy,
 * and a concave function is what greedy distributions need; it also says that cores may be
 * had in larger steps where one more alone brings little.
 */
#ifndef RMD_CURVE_H
#define RMD_CURVE_H

#include "invasive.h"

enum { RMD_SEGMENTS = INV_SCALABILITY_POINTS + 2 };

/* Slopes that differ by less are the same: speed-ups are announced as floats. */
#define RMD_ALIKE 1e-6

struct rmd_curve {
    unsigned segments; /* the last goes on for ever; slopes fall */
    struct rmd_segment {
        double cores; /* where it begins; the first at 0 */
        double speed; /* S there */
        double slope;
    } at[RMD_SEGMENTS];
};

/* The curve of a graph.  Without a point it is perfect: S(c) = c.  Invalid points are left out. */
void rmd_curve_of(const struct inv_scalability *graph, struct rmd_curve *curve);
/*
 * What cores deliver to a process, in whole cores (delivery.h): each of its own `cores` delivers
 * `part`; each further core, which other processes have now, delivers `further`.
 */
struct rmd_delivered {
    double cores, part, further;
};
/* The number of cores that together deliver `whole`. */
double rmd_cores_delivering(const struct rmd_delivered *delivered, double whole);
/* Changes the curve to that of the same process on such cores.  It is not concave if further >
 * part. */
void rmd_curve_slow(struct rmd_curve *curve, const struct rmd_delivered *delivered);

/* The segment in which the next core after `cores` lies. */
static inline unsigned rmd_curve_segment(const struct rmd_curve *c, double cores)
{
    unsigned k = 0; /* counted: no processor predicts where a search ends */
    for (unsigned i = 1; i < c->segments; i++)
        k += c->at[i].cores <= cores;
    return k;
}

/* S(cores). */
static inline double rmd_curve_at(const struct rmd_curve *c, double cores)
{
    const struct rmd_segment *s = &c->at[rmd_curve_segment(c, cores)];
    return s->speed + s->slope * (cores - s->cores);
}

/* The number of cores beyond which further ones bring nothing; HUGE_VAL: there is none. */
double rmd_curve_enough(const struct rmd_curve *curve);

#endif
