/* SPDX-License-Identifier: GPL-3.0-or-later */
/* thermal.c - see thermal.h. */
#define _GNU_SOURCE
#include "rmd/power/thermal.h"

#include <math.h>

/* AHEAD: looks for which the temperature is guessed.  DOWN_A_DEGREE, DOWN_LEAST: by which the speed
 * falls for each degree above the threshold, and at least.  UP: by which it grows, and from how
 * many degrees below the threshold on.  Chosen by simulation of chips that take 4, 8 and 30 s to
 * warm up, with thresholds that ask for 0.69 to 0.94 of the speed: of 375 choices nearly the one
 * that costs least; bench/run thermal measures what it costs. */
static const double AHEAD = 4, DOWN_A_DEGREE = 0.03, DOWN_LEAST = 0.005, UP = 0.02, BELOW = 1;

double rmd_thermal_next(double part, double now, double last, double threshold)
{
    double expected = now + AHEAD * fmax(now - last, 0);
    if (expected > threshold)
        part -= fmax(DOWN_LEAST, DOWN_A_DEGREE * (expected - threshold));
    else if (expected < threshold - BELOW)
        part += UP;
    return fmin(1, fmax(RMD_THERMAL_SLOWEST, part));
}
