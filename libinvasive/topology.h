/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * topology.h - the cores that a domain is made of: which ones, and in which order.
 *
 * Linked into rmd only.  User programs never load hwloc: the core table carries the
 * Linux CPU number of every core, which is all that they need to pin a thread.
 */
#ifndef INV_TOPOLOGY_H
#define INV_TOPOLOGY_H

#include "table.h"

struct inv_topology {
    unsigned ncores;           /* 1..INV_MAX_CORES */
    bool emulated;             /* os_cpu is meaningless: nobody is pinned */
    int os_cpu[INV_MAX_CORES]; /* Linux CPU of core i; neighbours in the machine are
                                  neighbours here (hwloc's logical order) */
    char description[128];     /* one line for people */
};

/*
 * inv_topology_detect - the processing units that this process may run on.
 *   cpu_list  NULL, or a list such as "0-3,8" that restricts them further
 * Returns 0; or -1 with errno: EINVAL the list is malformed, ENODEV none is left.  More
 * than INV_MAX_CORES are cut off, which the description says.
 */
int inv_topology_detect(struct inv_topology *topology, const char *cpu_list);

/* inv_topology_emulate - ncores cores that do not exist.  -1, EINVAL when out of range. */
int inv_topology_emulate(struct inv_topology *topology, unsigned ncores);

#endif
