/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * topology.h - the cores that a domain is made of: which ones, and in which order.
 *
 * Linked into rmd only.  User programs never load hwloc: the core table carries the
 * Linux CPU number of every core, which is all that they need to pin a thread.
 */
#ifndef INV_TOPOLOGY_H
#define INV_TOPOLOGY_H

#include "libinvasive/table/table.h"

struct inv_topology {
    unsigned ncores;           /* 1..INV_MAX_CORES */
    bool emulated;             /* os_cpu is meaningless: no thread is pinned */
    int os_cpu[INV_MAX_CORES]; /* Linux CPU of core i; neighbours in the machine are
                                  neighbours here (hwloc's logical order) */
    unsigned char apart[INV_MAX_CORES]; /* enum inv_apart: core i from core i - 1.  Two cores
                                           are as far apart as the farthest step between
                                           them; [0] is INV_SAME_MACHINE */
    unsigned short speed[INV_MAX_CORES]; /* 1..INV_WHOLE_SPEED, that of the fastest cores */
    uint64_t asked;            /* hash of cpu_list (or machine) and first_only */
    unsigned unused;           /* number of CPUs that there was no room for */
    char description[128];     /* one line for people */
};

/*
 * inv_topology_detect - the processing units that this process may run on.
 *   cpu_list     NULL, or a list such as "0-3,8" that restricts them further
 *   first_only   take only the first allowed hardware thread of each physical core
 * Returns 0; or -1 with errno: EINVAL the list is malformed, ENODEV none is left.  Units
 * beyond INV_MAX_CORES are left out, which the description says.
 */
int inv_topology_detect(struct inv_topology *topology, const char *cpu_list, bool first_only);

/*
 * inv_topology_emulate - cores that do not exist.
 *   machine     how many (each is a physical core, and all share one cache), also with speeds, such
 *               as "4x1.0,4x0.6", from 0.01 to 1; or a machine in hwloc's words, such as
 *               "package:4 numa:2 l3:8 core:8 pu:2"
 *   first_only  as above
 * Returns 0; or -1, EINVAL when it is none of these or has more than INV_MAX_CORES cores.
 */
int inv_topology_emulate(struct inv_topology *topology, const char *machine, bool first_only);

/* Have the cores several speeds? */
static inline bool inv_topology_uneven(const struct inv_topology *t)
{
    for (unsigned c = 1; c < t->ncores; c++)
        if (t->speed[c] != t->speed[0])
            return true;
    return false;
}

/* Replaces the cores of *topology by those of a former rmd whose `asked` was the same. */
void inv_topology_resume(struct inv_topology *topology, unsigned ncores, const int32_t *os_cpu,
                         const unsigned char *apart);

#endif
