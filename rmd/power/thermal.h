/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thermal.h - at which part of its highest speed a chip stays below a threshold.  As in Acun et al.,
 * "Parallel Programming with Migratable Objects: Charm++ in Practice", SC 2014,
 * doi:10.1109/SC.2014.58, section III.C, each chip follows its own temperature, and load is balanced by
 * the speeds that result (rmd/power/heat.h).
 */
#ifndef RMD_THERMAL_H
#define RMD_THERMAL_H

enum {
    RMD_THERMAL_LEAST = 30,  /* degrees Celsius: the lowest and the highest threshold */
    RMD_THERMAL_MOST = 120,
    RMD_THERMAL_PERIOD_MS = 1000, /* from look to look */
};
#define RMD_THERMAL_SLOWEST 0.2 /* the least part of the highest speed */

/*
 * rmd_thermal_next - the part of the highest speed until the next look, RMD_THERMAL_SLOWEST to 1.
 * Pure.
 *   part       the present one
 *   now, last  degrees at this look and at the look before
 *   threshold  degrees
 * The temperature in four looks is guessed by its change since the last look.  If that is above the
 * threshold, the speed falls in proportion to the excess; if it is more than a degree below, the
 * speed grows by a fiftieth; else it stays.
 */
double rmd_thermal_next(double part, double now, double last, double threshold);

#endif
