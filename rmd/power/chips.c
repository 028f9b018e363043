/* SPDX-License-Identifier: GPL-3.0-or-later */
/* chips.c - see chips.h. */
#define _GNU_SOURCE
#include "rmd/power/chips.h"
#include "libinvasive/base/cpulist.h"
#include "rmd/host/sysfile.h"

#include <string.h>

unsigned rmd_chips_of_package(const struct rmd_chips *chips, uint64_t package)
{
    for (unsigned i = 0; chips->known && i < chips->count; i++)
        if (chips->package[i] == package)
            return i;
    return RMD_NO_CHIP;
}

static unsigned find_or_add(struct rmd_chips *chips, uint64_t package)
{
    unsigned i = rmd_chips_of_package(chips, package);
    if (i != RMD_NO_CHIP || chips->count == RMD_CHIPS || package > UINT32_MAX)
        return i;
    chips->known = true;
    chips->package[chips->count] = (uint32_t)package;
    return chips->count++;
}

void rmd_chips_find(struct rmd_chips *chips, const char *root)
{
    if (!chips->known) {
        chips->count = 0;
        memset(chips->of_cpu, RMD_NO_CHIP, sizeof chips->of_cpu);
    }
    for (unsigned cpu = 0; cpu < RMD_CHIP_CPUS; cpu++) {
        uint64_t package;
        struct rmd_sysfile file = rmd_sysfile(
            root, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
        if (rmd_sysfile_read(&file, &package))
            chips->of_cpu[cpu] = (unsigned char)find_or_add(chips, package);
    }
    if (chips->known)
        return;
    chips->count = 1;
    memset(chips->of_cpu, 0, sizeof chips->of_cpu);
}

unsigned rmd_chips_of_cpu_list(const struct rmd_chips *chips, const char *path)
{
    struct rmd_sysfile file = rmd_sysfile(path, "%s", "");
    struct inv_cpus cpus;
    char text[1024];
    unsigned found = RMD_NO_CHIP;
    if (!rmd_sysfile_read_line(&file, text, sizeof text) || inv_cpulist_parse(text, &cpus))
        return RMD_NO_CHIP;
    for (int cpu = 0; cpu < INV_MAX_CPUS; cpu++) {
        if (!inv_cpus_has(&cpus, (size_t)cpu))
            continue;
        unsigned chip = rmd_chips_of_cpu(chips, cpu);
        if (chip == RMD_NO_CHIP)
            continue; /* it has been offline */
        if (found != RMD_NO_CHIP && chip != found)
            return RMD_NO_CHIP;
        found = chip;
    }
    return found;
}
