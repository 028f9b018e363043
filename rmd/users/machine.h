/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.h - what rmd reads and sets for the whole machine in /proc and /sys: what cores deliver,
 * while a policy uses that; a power cap; the temperature of the CPUs. */
#ifndef RMD_MACHINE_H
#define RMD_MACHINE_H

#include "rmd/config/persisted_orders.h"
#include "rmd/host/delivery.h"
#include "rmd/power/power.h"
#include "rmd/power/sensors.h"
#include "rmd/power/thermal.h"
#include "rmd/loop/loop.h"
#include "libinvasive/table/topology.h"

/* Zeros at first.  Written by rmd's main thread, in the functions below. */
struct rmd_machine_state {
    struct rmd_source timer; /* NULL `ready`: samples are not taken */
    void (*sampled)(void);
    const char *root;
    const struct inv_topology *topology;
    int os_cpu[INV_MAX_CORES];
    bool on;
    struct rmd_delivery delivery;
    struct rmd_power power;
    struct rmd_heat {
        struct rmd_source timer; /* NULL `ready`: temperatures are not read */
        void (*limited)(double part);
        unsigned threshold; /* degrees Celsius; 0: none */
        unsigned ordered;   /* an operator's threshold, or RMD_PERSISTED_OFF; 0: the configured
                               one */
        struct rmd_sensors sensors;
        double part;       /* of the highest speed, or of the cores */
        bool by_cores;     /* the frequencies could not be set: cores are left out instead */
        uint64_t retry_ns; /* by_cores: they are tried again at this time (CLOCK_MONOTONIC), and */
        unsigned online;   /* as soon as another number of CPUs than this one is online */
    } heat;
};

/*
 * rmd_machine_watch - prepares to read files below `root` ("" for /).  Emulated cores have files
 * only below another root, with their core numbers as CPU numbers.  *topology must stay where it
 * is.  `sampled` is called after each sample, and `limited` when heat changes the part of the cores
 * that may be used.  Returns 0, or -1 with errno.
 */
int rmd_machine_watch(struct rmd_machine_state *machine, const struct inv_topology *topology,
                      const char *root, void (*sampled)(void), void (*limited)(double part));
/* Begins or ends sampling of what cores deliver; without it only the cores' speeds are known. */
void rmd_machine_sample(struct rmd_machine_state *machine, bool on);
/* By core: what it delivers (delivery.h).  The array stays where it is. */
const double *rmd_machine_delivered(const struct rmd_machine_state *machine);

/* Undoes the power cap of a killed rmd (persisted_orders.h), and sets `cap` until
 * rmd_machine_close.  orders: where the settings are saved that the next rmd must restore if this
 * one is killed; NULL: nowhere.  False: it has logged the reason. */
bool rmd_machine_cap(struct rmd_machine_state *machine, const char *root, struct rmd_power_cap cap,
                     struct rmd_persisted *orders);
/*
 * rmd_machine_cool - keeps the CPUs below `degrees` Celsius (thermal.h) from now on; 0: ends that,
 * and restores everything.  It lowers frequencies or, if they cannot be set, leaves out cores, and
 * tries the frequencies again each minute, and when CPUs go online or offline.  While a sensor is
 * missing (sensors.h), the CPUs do not become faster: no higher speed is known to be safe.  A call
 * gives up the sensors that are missing.  Called after rmd_machine_cap.
 * False with errno, and the limit is as it was: ENODEV no sensor can be read.
 */
bool rmd_machine_cool(struct rmd_machine_state *machine, unsigned degrees);
void rmd_machine_close(struct rmd_machine_state *machine);

#endif
