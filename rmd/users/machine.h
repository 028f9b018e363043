/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.h - what rmd reads and sets for the whole machine in /proc and /sys: what cores deliver,
 * while a policy uses that; a power cap; the temperature of the CPUs. */
#ifndef RMD_MACHINE_H
#define RMD_MACHINE_H

#include "rmd/config/persisted_orders.h"
#include "rmd/host/delivery.h"
#include "rmd/power/power.h"
#include "rmd/loop/loop.h"
#include "rmd/power/heat.h"
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
    struct rmd_heat heat;
};

/*
 * rmd_machine_watch - prepares to read files below `root` ("" for /).  Emulated cores have files
 * only below another root, with their core numbers as CPU numbers.  *topology must stay where it
 * is.  `sampled` is called after each sample, and `limited` when heat changes what is left of the cores
 * (heat.h).  Returns 0, or -1 with errno.
 */
int rmd_machine_watch(struct rmd_machine_state *machine, const struct inv_topology *topology,
                      const char *root, void (*sampled)(void), void (*limited)(const struct rmd_heat_limit *limit));
/* Begins or ends sampling of what cores deliver; without it only the cores' speeds are known. */
void rmd_machine_sample(struct rmd_machine_state *machine, bool on);
/* The cores' speeds in *topology have changed. */
void rmd_machine_speeds_changed(struct rmd_machine_state *machine);
/* By core: what it delivers (delivery.h).  The array stays where it is. */
const double *rmd_machine_delivered(const struct rmd_machine_state *machine);

/* Undoes the power cap of a killed rmd (persisted_orders.h), and sets `cap` until
 * rmd_machine_close.  orders: where the settings are saved that the next rmd must restore if this
 * one is killed; NULL: nowhere.  False: it has logged the reason. */
bool rmd_machine_cap(struct rmd_machine_state *machine, const char *root, struct rmd_power_cap cap,
                     struct rmd_persisted *orders);
void rmd_machine_close(struct rmd_machine_state *machine);

#endif
