/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.h - CPUs that the kernel has been told to do without, and that it has again. */
#ifndef RMD_ONLINE_H
#define RMD_ONLINE_H

#include "libinvasive/table/topology.h"

/*
 * rmd_online - reads ROOT/sys/devices/system/cpu/online.
 *   topology  emulated cores have their core numbers as CPU numbers, and only below another root
 *             than /
 *   away      by core: true: its CPU is offline.  All false if the file cannot be read, or if no
 *             core would be left
 * Returns the number of cores that are away.
 */
unsigned rmd_online(const char *root, const struct inv_topology *topology,
                    bool away[INV_MAX_CORES]);

#endif
