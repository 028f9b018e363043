/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.h - which CPUs are offline, or have been removed from rmd's cpuset. */
#ifndef RMD_ONLINE_H
#define RMD_ONLINE_H

#include "libinvasive/base/cpus.h"
#include "libinvasive/table/topology.h"

/* How many CPUs ROOT/sys/devices/system/cpu/online lists; 0: it cannot be read. */
unsigned rmd_online_count(const char *root);

/* The CPUs of rmd's cpuset, whatever rmd's affinity is.  False: not known. */
bool rmd_cpuset(struct inv_cpus *cpus);

/*
 * rmd_online - reads ROOT/sys/devices/system/cpu/online, and rmd's cpuset.
 *   topology  emulated cores have their core numbers as CPU numbers, and only below another root
 *             than /
 *   had       rmd's cpuset when rmd began: CPUs that have been removed from it are away, too, if
 * root is
 *             "" and the cores are not emulated.  NULL: only offline CPUs are away
 *   away      by core.  All false if nothing can be read, or if no core would be left
 * Returns the number of cores that are away.
 */
unsigned rmd_online(const char *root, const struct inv_topology *topology, const struct inv_cpus *had,
                    bool away[INV_MAX_CORES]);

#endif
