/* SPDX-License-Identifier: GPL-3.0-or-later */
/* apportion.h - shares of whole cores in proportion to weights, within ranges. */
#ifndef RMD_APPORTION_H
#define RMD_APPORTION_H

#include "rmd/policy/arena.h"

struct rmd_part {
    double weight; /* > 0; ratios of weights beyond 10^9 have no meaning */
    double lo, hi; /* range of the quota, 0 <= lo <= hi */
    unsigned owned; /* cores owned now */
};

/*
 * rmd_apportion - sets share[i] for each of n parts.  With the level x at which the quotas
 * q_i = clamp(x * weight_i, lo_i, hi_i) add up to `cores`, each part gets floor(q_i) or one more,
 * the largest remainders first; of equal remainders those of parts that own more than floor(q_i)
 * already.  If all lo add up to no more than `cores`: sum share = min(cores, sum hi) when lo and hi
 * are whole numbers.
 */
void rmd_apportion(const struct rmd_part *parts, unsigned n, unsigned cores, unsigned *share,
                   struct rmd_arena arena);

#endif
