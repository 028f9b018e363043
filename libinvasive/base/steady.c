/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* steady.c - see steady.h. */
#include "libinvasive/base/steady.h"
#include "libinvasive/base/assertion.h"

#include <math.h>

static const double CLEARLY = 0.10, SLIGHTLY = 0.05; /* other than told */

static bool set_told(struct inv_steady *s, double value)
{
    inv_assert(value >= 0);
    *s = (struct inv_steady){.told = value};
    return true;
}

bool inv_steady_add(struct inv_steady *s, double value)
{
    inv_assert(value >= 0 && s->told >= 0);
    inv_assert(s->run < INV_STEADY_RUN && s->side >= -1 && s->side <= 1);
    s->all += value;
    s->count++;
    if (s->told == 0)
        return s->count >= INV_STEADY_FIRST && s->all > 0 && set_told(s, s->all / s->count);
    double change = value - s->told;
    int side = change > CLEARLY * s->told ? 1 : change < -CLEARLY * s->told ? -1 : 0;
    if (side != s->side || side == 0) {
        s->side = side;
        s->run = 0;
        s->sum = 0;
    }
    s->sum += value;
    if (side && ++s->run >= INV_STEADY_RUN)
        return set_told(s, s->sum / s->run);
    if (s->count < INV_STEADY_BLOCK || s->run > 1) /* a series on one side will tell */
        return false;
    double mean = s->all / s->count;
    s->all = s->count = 0;
    return fabs(mean - s->told) > SLIGHTLY * s->told && set_told(s, mean);
}
