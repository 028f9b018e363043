/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.c - a list of CPUs such as 0-3,6. */
#define _GNU_SOURCE
#include "rmd/host/online.h"
#include "libinvasive/base/cpulist.h"
#include "rmd/host/sysfile.h"

#include <stdio.h>
#include <string.h>

static bool read_online(const char *root, struct inv_cpus *online)
{
    struct rmd_sysfile file = rmd_sysfile(root, "/sys/devices/system/cpu/online");
    char text[4096];
    FILE *f = fopen(file.path, "re");
    bool good = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    if (!good)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return !inv_cpulist_parse(text, online);
}

unsigned rmd_online(const char *root, const struct inv_topology *t, bool away[INV_MAX_CORES])
{
    struct inv_cpus online;
    unsigned n = 0;
    memset(away, false, INV_MAX_CORES * sizeof *away);
    if ((t->emulated && !*root) || !read_online(root, &online))
        return 0;
    for (unsigned c = 0; c < t->ncores; c++) {
        int cpu = t->emulated ? (int)c : t->os_cpu[c];
        away[c] = cpu >= 0 && cpu < INV_MAX_CPUS && !inv_cpus_has(&online, (size_t)cpu);
        n += away[c];
    }
    if (n < t->ncores)
        return n;
    memset(away, false, INV_MAX_CORES * sizeof *away);
    return 0;
}
