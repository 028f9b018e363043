/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.c - see online.h; a list of CPUs such as 0-3,6, and rmd's cpuset. */
#define _GNU_SOURCE
#include "rmd/host/online.h"
#include "libinvasive/base/cpulist.h"
#include "rmd/host/sysfile.h"

#include <string.h>

static bool read_online(const char *root, struct inv_cpus *online)
{
    struct rmd_sysfile file = rmd_sysfile(root, "/sys/devices/system/cpu/online");
    char text[4096];
    return rmd_sysfile_read_line(&file, text, sizeof text) && !inv_cpulist_parse(text, online);
}

unsigned rmd_online_count(const char *root)
{
    struct inv_cpus online;
    return read_online(root, &online) ? (unsigned)inv_cpus_count(&online) : 0;
}

/* The kernel leaves of an affinity what is in the cpuset. */
bool rmd_cpuset(struct inv_cpus *cpus)
{
    struct inv_cpus before, all;
    memset(&all, 0xff, sizeof all);
    if (inv_cpus_get(0, &before) || inv_cpus_set(0, &all))
        return false;
    bool known = inv_cpus_get(0, cpus) == 0;
    inv_cpus_set(0, &before); /* fails if none of them is left: rmd is where the kernel has put it */
    return known;
}

unsigned rmd_online(const char *root, const struct inv_topology *t, const struct inv_cpus *had,
                    bool away[INV_MAX_CORES])
{
    struct inv_cpus online, may;
    unsigned n = 0;
    memset(away, false, INV_MAX_CORES * sizeof *away);
    bool known = (!t->emulated || *root) && read_online(root, &online);
    bool narrowed = had && !t->emulated && !*root && rmd_cpuset(&may);
    for (unsigned c = 0; (known || narrowed) && c < t->ncores; c++) {
        int cpu = t->emulated ? (int)c : t->os_cpu[c];
        if (cpu < 0 || cpu >= INV_MAX_CPUS)
            continue;
        away[c] = (known && !inv_cpus_has(&online, (size_t)cpu)) ||
                  (narrowed && inv_cpus_has(had, (size_t)cpu) && !inv_cpus_has(&may, (size_t)cpu));
        n += away[c];
    }
    if (n < t->ncores)
        return n;
    memset(away, false, INV_MAX_CORES * sizeof *away);
    return 0;
}
