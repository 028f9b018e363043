/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * level.h - where a piecewise linear function that never falls reaches a value: Newton steps,
 * which are exact once no kink lies between, kept between bounds that a bisection narrows.
 */
#ifndef RMD_LEVEL_H
#define RMD_LEVEL_H

#include <math.h>

/* fmin and fmax without a call: neither argument is NaN here. */
static inline double rmd_least(double a, double b)
{
    return b < a ? b : a;
}

static inline double rmd_most(double a, double b)
{
    return b > a ? b : a;
}

struct rmd_slope {
    double value, slope; /* to the right */
};

/*
 * rmd_level - x in [0, high] with f(x).value = goal, within rounding; f(0) <= goal <= f(high).
 * f is called with `of` and x.
 */
static inline double rmd_level(struct rmd_slope (*f)(const void *of, double x), const void *of,
                               double goal, double guess, double high)
{
    double low = 0, x = fmin(guess, high);
    for (int step = 0; step < 200 && high - low > 1e-15 * high; step++) {
        struct rmd_slope at = f(of, x);
        double over = at.value - goal;
        if (fabs(over) <= 1e-12 * goal)
            break;
        *(over < 0 ? &low : &high) = x;
        double newton = at.slope > 0 ? x - over / at.slope : low;
        x = newton > low && newton < high ? newton : (low + high) / 2;
    }
    return x;
}

#endif
