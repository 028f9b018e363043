/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_series.c - the number of cores of each process over time, for pictures.  The length of a
 * schedule is not known beforehand, so bins become twice as long when there are too few.
 */
#include "tools/rmctl/simulate/simulate.h"

#include <math.h>

static void double_bins(struct sim_series *s)
{
    for (unsigned band = 0; band < SIM_BANDS; band++)
        for (unsigned b = 0; b < SIM_BINS; b++)
            s->busy[band][b] = b < SIM_BINS / 2
                                   ? s->busy[band][2 * b] + s->busy[band][2 * b + 1]
                                   : 0;
    s->bin_s *= 2;
}

void sim_series_add(struct sim_series *s, unsigned band, double from, double to, double cores)
{
    if (!s || to <= from || cores <= 0)
        return;
    while (to > s->bin_s * SIM_BINS)
        double_bins(s);
    unsigned first = (unsigned)(from / s->bin_s);
    for (unsigned b = first; b < SIM_BINS && b * s->bin_s < to; b++) {
        double begin = fmax(from, b * s->bin_s), end = fmin(to, (b + 1) * s->bin_s);
        if (end > begin)
            s->busy[band][b] += (end - begin) * cores;
    }
}
