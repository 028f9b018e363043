/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * topology.c - finds the cores of a domain with hwloc.
 *
 * Linked into rmd only: user programs never load hwloc, they find the CPU numbers in
 * the core table.  A core of ours is one processing unit of the machine, in hwloc's
 * logical order, so that a contiguous range of cores shares caches and a NUMA node.
 * What hwloc says is only trusted for the order; which CPUs we may use is the kernel's
 * word (the affinity mask), so that a wrong HWLOC_XMLFILE cannot invent any.
 */
#define _GNU_SOURCE
#include "topology.h"
#include "cpulist.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>

static void take(struct inv_topology *t, cpu_set_t *left, unsigned cpu)
{
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, left))
        return;
    CPU_CLR(cpu, left);
    if (t->ncores < INV_MAX_CORES)
        t->os_cpu[t->ncores++] = (int)cpu;
}

/* Take the CPUs of `left` in the order of the machine. */
static void take_in_machine_order(struct inv_topology *t, cpu_set_t *left)
{
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine))
        return;
    hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (!hwloc_topology_load(machine)) {
        hwloc_obj_t pu = NULL;
        while ((pu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, pu)) != NULL)
            take(t, left, pu->os_index);
    }
    hwloc_topology_destroy(machine);
}

int inv_topology_detect(struct inv_topology *t, const char *cpu_list)
{
    cpu_set_t allowed, listed, left;
    t->ncores = 0;
    t->emulated = false;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return -1;
    if (cpu_list) {
        if (inv_cpulist_parse(cpu_list, &listed)) {
            errno = EINVAL;
            return -1;
        }
        CPU_AND(&allowed, &allowed, &listed);
    }
    unsigned usable = (unsigned)CPU_COUNT(&allowed);
    if (!usable) {
        errno = ENODEV;
        return -1;
    }
    left = allowed;
    take_in_machine_order(t, &left);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) /* what hwloc did not know of */
        take(t, &left, cpu);
    snprintf(t->description, sizeof t->description, "%u CPU%s of this machine%s", t->ncores,
             t->ncores == 1 ? "" : "s", usable > t->ncores ? " (more are allowed, unused)" : "");
    return 0;
}

int inv_topology_emulate(struct inv_topology *t, unsigned ncores)
{
    if (ncores < 1 || ncores > INV_MAX_CORES) {
        errno = EINVAL;
        return -1;
    }
    t->ncores = ncores;
    t->emulated = true;
    for (unsigned i = 0; i < ncores; i++)
        t->os_cpu[i] = -1;
    snprintf(t->description, sizeof t->description, "%u emulated cores", ncores);
    return 0;
}
