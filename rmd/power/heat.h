/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * heat.h - keeps the chips of the machine below a temperature.  Each chip has a speed of its own, by
 * the sensors that belong to it (thermal.h, sensors.h): that of its CPUs' frequencies or, where these
 * cannot be set, of the number of its cores that are used.  (Acun et al., SC 2014,
 * doi:10.1109/SC.2014.58, section III.C.)
 */
#ifndef RMD_HEAT_H
#define RMD_HEAT_H

#include "rmd/power/power.h"
#include "rmd/power/sensors.h"
#include "rmd/power/thermal.h"
#include "rmd/loop/loop.h"
#include "libinvasive/table/topology.h"

/* What heat leaves of the cores. */
struct rmd_heat_limit {
    unsigned char chip[INV_MAX_CORES]; /* by core: index of its chip, or RMD_NO_CHIP */
    double used[RMD_NO_CHIP + 1];      /* by chip: part of its cores that may be used; the last: of
                                          the cores of no chip */
    double speed[INV_MAX_CORES];       /* by core: part of its speed */
};

/* Zeros at first.  Written by rmd's main thread, in the functions below. */
struct rmd_heat {
    struct rmd_source timer; /* NULL `ready`: temperatures are not read */
    void (*limited)(const struct rmd_heat_limit *limit);
    const char *root;
    struct rmd_power *power;
    unsigned ncores;
    const int *os_cpu;
    unsigned threshold; /* degrees Celsius; 0: none */
    unsigned ordered;   /* an operator's threshold, or RMD_PERSISTED_OFF; 0: the configured one */
    struct rmd_chips chips;
    struct rmd_sensors sensors;
    double part[RMD_CHIPS]; /* by chip: of its highest speed, or of its cores */
    bool by_cores;          /* the frequencies could not be set: cores are left out instead */
    uint64_t retry_ns;      /* by_cores: they are tried again at this time (CLOCK_MONOTONIC), and */
    unsigned online;        /* as soon as another number of CPUs than this one is online */
    double cpu_speed[RMD_POWER_KNOBS]; /* by CPU: part of its speed, when frequencies were set last */
    struct rmd_heat_limit limit;
};

/*
 * rmd_heat_open - prepares to read and set files below `root` ("" for /).  Returns 0, or -1 with
 * errno.
 *   power           sets the frequencies; stays the caller's, as root and os_cpu do
 *   os_cpu, ncores  the CPU of each core
 *   limited         called when heat changes what is left of the cores
 */
int rmd_heat_open(struct rmd_heat *heat, const char *root, struct rmd_power *power,
                  const int *os_cpu, unsigned ncores,
                  void (*limited)(const struct rmd_heat_limit *limit));
/*
 * rmd_heat_keep_below - keeps the chips below `degrees` Celsius from now on; 0: ends that, and
 * restores everything.  It lowers frequencies or, if they cannot be set, leaves out cores, and tries
 * the frequencies again each minute, and when CPUs go online or offline.  While a sensor of a chip is
 * missing (sensors.h), the chip does not become faster: no higher speed is known to be safe.  A call
 * gives up the sensors that are missing.  Called after rmd_machine_cap.
 * False with errno, and the limit is as it was: ENODEV no sensor can be read.
 */
bool rmd_heat_keep_below(struct rmd_heat *heat, unsigned degrees);
/* What is seen of a chip: its own sensors and those of no chip or, if it has none, all sensors. */
const struct rmd_heat_seen *rmd_heat_of_chip(const struct rmd_heat *heat, unsigned chip);
/* The part of the slowest chip. */
double rmd_heat_least(const struct rmd_heat *heat);

#endif
