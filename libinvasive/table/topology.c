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
#include "libinvasive/table/topology.h"
#include "libinvasive/base/cpulist.h"
#include "libinvasive/table/speeds.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 8 * INV_MAX_CORES }; /* hardware threads of a machine that is described */

/* The last cache of a CPU; NULL when there is none that more than one core could share. */
static hwloc_obj_t cache_of(hwloc_topology_t machine, hwloc_obj_t pu)
{
    hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L3CACHE, pu);
    return l3 ? l3 : hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L2CACHE, pu);
}

static bool are_in_same(hwloc_topology_t machine, hwloc_obj_type_t type, hwloc_obj_t a,
                        hwloc_obj_t b)
{
    return hwloc_get_ancestor_obj_by_type(machine, type, a) ==
           hwloc_get_ancestor_obj_by_type(machine, type, b);
}

/* The outermost level first: cores that differ there are taken to differ in all levels within,
 * however the machine nests caches and NUMA nodes.  If the machine has no objects of a level, all
 * cores share it; but where hwloc knows no physical cores, no two share one. */
static enum inv_apart distance_between(hwloc_topology_t machine, hwloc_obj_t a, hwloc_obj_t b)
{
    if (!are_in_same(machine, HWLOC_OBJ_PACKAGE, a, b))
        return INV_SAME_MACHINE;
    if (a->nodeset && b->nodeset && !hwloc_bitmap_isequal(a->nodeset, b->nodeset))
        return INV_SAME_PACKAGE;
    if (cache_of(machine, a) != cache_of(machine, b))
        return INV_SAME_NODE;
    return are_in_same(machine, HWLOC_OBJ_CORE, a, b) &&
                   hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, a)
               ? INV_SAME_CORE
               : INV_SAME_CACHE;
}

/* False when there is no room for it. */
static bool add_core(struct inv_topology *t, int cpu, enum inv_apart apart)
{
    if (t->ncores == INV_MAX_CORES) {
        t->unused++;
        return false;
    }
    t->apart[t->ncores] = (unsigned char)(t->ncores ? apart : INV_SAME_MACHINE);
    t->speed[t->ncores] = INV_WHOLE_SPEED;
    t->os_cpu[t->ncores++] = cpu;
    return true;
}

/* Take the CPUs of `left` (NULL: all, and none of them is real) in the order of the machine.
 * False when there was not room for all. */
static bool take_in_machine_order(struct inv_topology *t, hwloc_topology_t machine,
                                  struct inv_cpus *left, bool first_only)
{
    hwloc_obj_t pu = NULL, last = NULL;
    bool all = true;
    while ((pu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, pu)) != NULL) {
        unsigned cpu = pu->os_index;
        if (left && (cpu >= INV_MAX_CPUS || !inv_cpus_has(left, cpu)))
            continue;
        if (left)
            inv_cpus_remove(left, cpu);
        enum inv_apart apart = last ? distance_between(machine, last, pu) : INV_SAME_MACHINE;
        if (first_only && apart == INV_SAME_CORE)
            continue;
        all &= add_core(t, left ? (int)cpu : -1, apart);
        last = pu;
    }
    return all;
}

/* Tells hwloc not to ask the processors.  False: it cannot be told, or has no code for these. */
static bool leave_processors_alone(hwloc_topology_t machine)
{
#if HWLOC_API_VERSION >= 0x00020100
    return !hwloc_topology_set_components(machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#else
    (void)machine;
    return false;
#endif
}

/* Loads this machine as the kernel describes it.  hwloc would also bind this thread to each CPU in
 * turn, where it waits for the program that computes there, and execute cpuid, some 20 us each in a
 * virtual machine: 3 of the 8 ms that `invade true` takes.  That is left for a machine of whose
 * caches the kernel says nothing.  False: *machine is void. */
static bool load_from_kernel(hwloc_topology_t *machine)
{
    if (hwloc_topology_init(machine))
        return false;
    if (leave_processors_alone(*machine) && !hwloc_topology_load(*machine) &&
        (hwloc_get_nbobjs_by_type(*machine, HWLOC_OBJ_L2CACHE) > 0 ||
         hwloc_get_nbobjs_by_type(*machine, HWLOC_OBJ_L3CACHE) > 0))
        return true;
    hwloc_topology_destroy(*machine);
    return false;
}

/* Loads this machine (description NULL), or the described one. */
static bool load_machine(hwloc_topology_t *machine, const char *description)
{
    if (!description && load_from_kernel(machine))
        return true;
    if (hwloc_topology_init(machine))
        return false;
    if ((!description || !hwloc_topology_set_synthetic(*machine, description)) &&
        !hwloc_topology_load(*machine))
        return true;
    hwloc_topology_destroy(*machine);
    return false;
}

static void describe_cores(struct inv_topology *t, const char *what, const char *more)
{
    static const char *const name[] = {"core", "cache", "NUMA node", "package"};
    unsigned groups[INV_SAME_MACHINE] = {0};
    int n = snprintf(t->description, sizeof t->description, "%u %s%s", t->ncores, what,
                     t->ncores == 1 ? "" : "s");
    for (unsigned k = 0; k < INV_SAME_MACHINE; k++)
        for (unsigned c = 0; c < t->ncores; c++)
            groups[k] += t->apart[c] > k;
    for (unsigned k = 0; k < INV_SAME_MACHINE; k++)
        if (groups[k] > 1 && groups[k] < (k ? groups[k - 1] : t->ncores))
            n += snprintf(t->description + n, sizeof t->description - (size_t)n, ", %u %ss",
                          groups[k], name[k]);
    snprintf(t->description + n, sizeof t->description - (size_t)n, "%s", more);
}

/* FNV-1a. */
static uint64_t hash(const char *text, bool first_only)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ first_only;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

int inv_topology_detect(struct inv_topology *t, const char *cpu_list, bool first_only)
{
    struct inv_cpus allowed, listed, left;
    hwloc_topology_t machine;
    t->ncores = t->unused = 0;
    t->emulated = false;
    t->asked = hash(cpu_list ? cpu_list : "", first_only);
    if (inv_cpus_get(0, &allowed))
        return -1;
    if (cpu_list) {
        if (inv_cpulist_parse(cpu_list, &listed)) {
            errno = EINVAL;
            return -1;
        }
        inv_cpus_and(&allowed, &allowed, &listed);
    }
    if (!inv_cpus_count(&allowed)) {
        errno = ENODEV;
        return -1;
    }
    left = allowed;
    if (load_machine(&machine, NULL)) {
        take_in_machine_order(t, machine, &left, first_only);
        hwloc_topology_destroy(machine);
    }
    for (unsigned cpu = 0; cpu < INV_MAX_CPUS; cpu++) /* what hwloc did not know of */
        if (inv_cpus_has(&left, cpu))
            add_core(t, (int)cpu, INV_SAME_MACHINE);
    describe_cores(t, "CPU", t->unused ? " (more are allowed, unused)" : "");
    return 0;
}

void inv_topology_resume(struct inv_topology *t, unsigned ncores, const int32_t *os_cpu,
                         const unsigned char *apart)
{
    t->ncores = t->unused = 0;
    for (unsigned c = 0; c < ncores; c++)
        add_core(t, os_cpu[c], (enum inv_apart)apart[c]);
    describe_cores(t, "CPU", "");
}

/* hwloc builds any machine, and takes minutes for some.  Counts are numbers after a colon, or words
 * that are numbers; what is in parentheses are sizes and indexes. */
static bool is_too_large(const char *description)
{
    unsigned long threads = 1;
    char before = ' ';
    for (const char *c = description; *c && threads <= THREADS_MAX;) {
        char *end = (char *)(uintptr_t)c + (*c == '(' ? strcspn(c, ")") : 1);
        unsigned long n = strchr(": +", before) && *c >= '0' && *c <= '9' ? strtoul(c, &end, 0) : 1;
        threads = n > THREADS_MAX ? n : threads * n;
        before = *c;
        c = end;
    }
    return threads > THREADS_MAX;
}

static int emulate_described(struct inv_topology *t, const char *description, bool first_only)
{
    hwloc_topology_t machine;
    if (is_too_large(description) || !load_machine(&machine, description)) {
        errno = EINVAL;
        return -1;
    }
    bool all = take_in_machine_order(t, machine, NULL, first_only);
    hwloc_topology_destroy(machine);
    describe_cores(t, "emulated core", "");
    errno = EINVAL;
    return all ? 0 : -1;
}

int inv_topology_emulate(struct inv_topology *t, const char *machine, bool first_only)
{
    unsigned short speed[INV_MAX_CORES];
    unsigned ncores = inv_speeds_parse(machine, INV_MAX_CORES, speed);
    t->ncores = t->unused = 0;
    t->emulated = true;
    t->asked = hash(machine, first_only);
    if (!ncores)
        return emulate_described(t, machine, first_only);
    for (unsigned i = 0; i < ncores; i++) {
        add_core(t, -1, INV_SAME_CACHE);
        t->speed[i] = speed[i];
    }
    describe_cores(t, "emulated core", "");
    return 0;
}
