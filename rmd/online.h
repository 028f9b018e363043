/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.h - CPUs that the kernel has been told to do without, and that it has again. */
#ifndef RMD_ONLINE_H
#define RMD_ONLINE_H

#include "topology.h"

/*
 * rmd_online - look at ROOT/sys/devices/system/cpu/online.
 *   topology  emulated cores have the CPU numbers of the cores, and only below another root than /
 *   away      by core: true when its CPU is offline.  Of nobody, when the file cannot be read or no
 *             core would be left
 * Returns how many are.
 */
unsigned rmd_online(const char *root, const struct inv_topology *topology,
                    bool away[INV_MAX_CORES]);

#endif
