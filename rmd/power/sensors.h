/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sensors.h - the sensors of temperature in the CPUs.  Each sensor that could be read once is
 * remembered: where one of several is missing, the hottest place may be the one that this sensor
 * measures, so the CPUs must not become faster.
 *
 * A sensor belongs to a chip: that of the label "Package id N" (coretemp), or that of the CPUs which are
 * local to its device (k10temp).  A sensor that tells no chip counts for all chips.  So do thermal
 * zones: the kernel does not tell their chips.
 *
 * A sensor whose file is there and cannot be read is missing until it can be read.  So is one whose
 * file is gone, unless a CPU was taken offline: the kernel removes the sensors of such a CPU for
 * good, so these are given up after RMD_SENSOR_GONE_S.
 */
#ifndef RMD_SENSORS_H
#define RMD_SENSORS_H

#include "rmd/power/chips.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RMD_SENSORS = 1024,     /* that are remembered; further ones are read, but not missed */
    RMD_SENSOR_GONE_S = 60, /* a CPU that is restarted, or a driver, is back within that time */
    RMD_SENSOR_TELL_S = 10, /* missing for so long is logged: one failed read is not */
};

struct rmd_sensor {
    char name[48];      /* its file, below the root */
    uint64_t read_ns;   /* CLOCK_MONOTONIC, of the last look that could read it */
    uint64_t listed_ns; /* CLOCK_MONOTONIC, of the last look at which its file was there */
    unsigned online;    /* CPUs that were online at read_ns; 0: not known */
    bool missing;       /* the last look could not read it */
    bool told;          /* the log says that it is missing */
    unsigned char chip; /* its index in rmd_chips, or RMD_NO_CHIP */
};

/* What several sensors tell together. */
struct rmd_heat_seen {
    double hottest;   /* degrees Celsius, at the last look with `read` > 0 */
    unsigned known;   /* how many are remembered */
    unsigned read;    /* how many the last look could read */
    unsigned missing; /* how many it could not read, of the known ones */
    bool changed;     /* it could read other sensors than the look before: `hottest` is of these */
};

/* Zeros at first.  Written by the functions below, on one thread. */
struct rmd_sensors {
    struct rmd_heat_seen all;
    struct rmd_heat_seen chip[RMD_CHIPS]; /* by index in rmd_chips: its sensors, and those of no chip */
    unsigned online; /* CPUs that were online at the last look; 0: not known */
    unsigned count; /* of `known`: could be read once, and are not given up */
    struct rmd_sensor known[RMD_SENSORS];
};

/*
 * rmd_sensors_look - reads the sensors below `root`: those of hwmon in CPUs or, if none can be
 * read, thermal zones of CPUs.  Logs once that sensors are missing for RMD_SENSOR_TELL_S while
 * others can be read, and that sensors are given up.
 *   chips   those below `root` (rmd_chips_find)
 *   now_ns  CLOCK_MONOTONIC
 */
void rmd_sensors_look(struct rmd_sensors *sensors, const char *root, const struct rmd_chips *chips,
                      uint64_t now_ns);
/* Gives up the sensors that are missing. */
void rmd_sensors_forget_missing(struct rmd_sensors *sensors);

#endif
