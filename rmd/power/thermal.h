/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thermal.h - how warm the CPUs are, and at which part of their highest speed they stay below a
 * threshold.  (Acun et al., "Parallel Programming with Migratable Objects: Charm++ in Practice",
 * SC 2014, doi:10.1109/SC.2014.58, section III.C, lowers the speed of hot chips.  Here all chips of
 * the node go at the speed that the hottest one needs, so ranks stay in balance.)
 */
#ifndef RMD_THERMAL_H
#define RMD_THERMAL_H

#include <stdbool.h>

enum {
    RMD_THERMAL_LEAST = 30,  /* degrees Celsius: the lowest and the highest threshold */
    RMD_THERMAL_MOST = 120,
    RMD_THERMAL_PERIOD_MS = 1000, /* from look to look */
};
#define RMD_THERMAL_SLOWEST 0.2 /* part of the highest speed that is left in any case */

/*
 * rmd_thermal_next - the part of the highest speed until the next look, RMD_THERMAL_SLOWEST to 1.
 * Pure.
 *   part       the present one
 *   now, last  degrees at this look and at the look before
 *   threshold  degrees
 * Where the temperature will be above the threshold in four looks if it rises as since the last one,
 * the speed falls in proportion to the degrees that are too many; where it will be more than a degree
 * below, the speed grows by a fiftieth; between it stays.
 */
double rmd_thermal_next(double part, double now, double last, double threshold);

/* The highest temperature of the CPUs, degrees; of hwmon's sensors in CPUs or, where there are
 * none, of thermal zones of CPUs, below `root`.  Returns how many sensors told one; 0: *hottest
 * stays as it is. */
unsigned rmd_thermal_read(const char *root, double *hottest);

#endif
