/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.h - what rmd looks at and sets in /proc and /sys: what cores deliver, while a policy wants
 * to know, a power cap, and how warm the CPUs may become. */
#ifndef RMD_MACHINE_H
#define RMD_MACHINE_H

#include "rmd/config/persisted_orders.h"
#include "rmd/host/delivery.h"
#include "rmd/power/power.h"
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
        struct rmd_source timer; /* NULL `ready`: temperatures are not looked at */
        void (*limited)(double part);
        unsigned threshold; /* degrees Celsius; 0 none */
        unsigned ordered;   /* by an operator: degrees, RMD_PERSISTED_OFF; 0: none, the configured one holds */
        unsigned sensors;   /* at the last look */
        double hottest, part; /* degrees; of the highest speed, or of the cores */
        bool by_cores; /* no frequency can be set: cores are left out instead */
    } heat;
};

/*
 * rmd_machine_watch - prepare to sample below `root` ("" for /; emulated cores only below another
 * one, whose CPU numbers are those of the cores).  The topology stays where it is.  `sampled` is called
 * after each sample, and `limited` when this part of the cores may be used because of heat.
 * Returns 0, or -1 with errno.
 */
int rmd_machine_watch(struct rmd_machine_state *machine, const struct inv_topology *topology,
                      const char *root, void (*sampled)(void), void (*limited)(double part));
/* Sample from now on, or do not; no more than the speeds of cores is known when it ends. */
void rmd_machine_sample(struct rmd_machine_state *machine, bool on);
/* Of a core by each core, 0 unknown; it stays where it is. */
const double *rmd_machine_delivered(const struct rmd_machine_state *machine);

/* Undoes the power cap of a killed rmd (persisted_orders.h) and sets this one until
 * rmd_machine_close.  orders: where the next rmd finds what is to be undone; NULL: none does.
 * False: it has logged the reason. */
bool rmd_machine_cap(struct rmd_machine_state *machine, const char *root, struct rmd_power_cap cap,
                     struct rmd_persisted *orders);
/*
 * rmd_machine_cool - keeps the CPUs below so many degrees Celsius (thermal.h) from now on; 0: no
 * longer, and everything is as it was.  By frequencies or, where none can be set, by leaving out
 * cores.  If all sensors vanish, the limit of that time stays: without them no higher one is known to be
 * safe.  After rmd_machine_cap.
 * False, and nothing has changed, with errno: ENODEV there is no sensor.
 */
bool rmd_machine_cool(struct rmd_machine_state *machine, unsigned degrees);
void rmd_machine_close(struct rmd_machine_state *machine);

#endif
