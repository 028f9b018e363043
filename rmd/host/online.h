/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.h - CPUs that the kernel has been told to do without, or that rmd's cpuset has no more, and that are
 * there again. */
#ifndef RMD_ONLINE_H
#define RMD_ONLINE_H

#include "libinvasive/base/cpus.h"
#include "libinvasive/table/topology.h"

/* The CPUs of rmd's cpuset, whatever its affinity.  False: not known. */
bool rmd_cpuset(struct inv_cpus *cpus);

/*
 * rmd_online - reads ROOT/sys/devices/system/cpu/online, and rmd's cpuset.
 *   topology  emulated cores have their core numbers as CPU numbers, and only below another root
 *             than /
 *   had       rmd's cpuset when it began: what is not in it any more is away, too, if root is "" and the
 *             cores are not emulated.  NULL: only what is offline is
 *   away      by core.  All false if nothing can be read, or if no core would be left
 * Returns the number of cores that are away.
 */
unsigned rmd_online(const char *root, const struct inv_topology *topology, const struct inv_cpus *had,
                    bool away[INV_MAX_CORES]);

#endif
