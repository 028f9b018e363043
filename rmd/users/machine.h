/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.h - what rmd looks at and sets in /proc and /sys for the policies: what cores deliver,
 * while a policy wants to know, and a power cap. */
#ifndef RMD_MACHINE_H
#define RMD_MACHINE_H

#include "rmd/host/power.h"
#include "libinvasive/table/topology.h"

/*
 * rmd_machine_watch - prepare to sample below `root` ("" for /; emulated cores only below another
 * one, whose CPU numbers are those of the cores).  `sampled` is called after each sample.
 * Returns 0, or -1 with errno.
 */
int rmd_machine_watch(const struct inv_topology *topology, const char *root,
                      void (*sampled)(void));
/* Sample from now on, or do not; nothing is known any more when it ends. */
void rmd_machine_sample(bool on);
/* Of a core by each core, 0 unknown; it stays where it is. */
const double *rmd_machine_delivered(void);

/* Undoes the power cap of a killed rmd (persisted_orders.h) and sets this one until
 * rmd_machine_close.  store: as for rmd_persisted_save, or NULL.  False: it has logged the
 * reason. */
bool rmd_machine_cap(const char *root, struct rmd_power_cap cap, void (*store)(int fd));
void rmd_machine_close(void);

#endif
