/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * power.c - sysfs: class/powercap/intel-rapl:N is a package (with a further :M a part of one);
 * its constraint_0 is the long-term one.  devices/system/cpu/cpuN/cpufreq has the frequencies.
 */
#define _GNU_SOURCE
#include "power.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZONE "/sys/class/powercap/intel-rapl:%u/constraint_0_"
#define CPU "/sys/devices/system/cpu/cpu%u/cpufreq/"

enum { ZONES_MAX = 64 };

bool rmd_power_parse(const char *text, struct rmd_power_cap *cap)
{
    char *end;
    cap->amount = strtod(text, &end);
    cap->percent = *end == '%';
    if (end != text && (*end == '%' || *end == 'W'))
        end++;
    return end != text && !*end && cap->amount > 0 && cap->amount <= (cap->percent ? 100 : 1e6);
}

static bool add_knob(struct rmd_power *p, struct rmd_sysfile file)
{
    uint64_t before;
    if (p->count == RMD_POWER_KNOBS || !rmd_sysfile_read(&file, &before))
        return false;
    struct rmd_power_knob *more = realloc(p->knob, (p->count + 1) * sizeof *more);
    if (!more)
        return false;
    p->knob = more;
    p->knob[p->count++] = (struct rmd_power_knob){file, before};
    return true;
}

static bool turn(struct rmd_power *p, struct rmd_sysfile file, double value)
{
    return add_knob(p, file) && rmd_sysfile_write(&file, (uint64_t)(value + 0.5));
}

/* The power that each package may take, in microwatts: as the vendor says, else as it is now. */
static unsigned zones(const char *root, uint64_t *most)
{
    unsigned n = 0;
    for (; n < ZONES_MAX; n++) {
        struct rmd_sysfile max = rmd_sysfile(root, ZONE "max_power_uw", n);
        struct rmd_sysfile now = rmd_sysfile(root, ZONE "power_limit_uw", n);
        if (!(rmd_sysfile_read(&max, &most[n]) && most[n]) && !rmd_sysfile_read(&now, &most[n]))
            break;
    }
    return n;
}

/* 0; 1 when the machine cannot; -1 with errno. */
static int limit_packages(struct rmd_power *p, const char *root, struct rmd_power_cap cap)
{
    uint64_t most[ZONES_MAX];
    unsigned n = zones(root, most);
    double all = 0;
    for (unsigned z = 0; z < n; z++)
        all += (double)most[z];
    if (all <= 0)
        return 1;
    double part = fmin(1, cap.percent ? cap.amount / 100 : cap.amount * 1e6 / all);
    for (unsigned z = 0; z < n; z++)
        if (!turn(p, rmd_sysfile(root, ZONE "power_limit_uw", z), part * (double)most[z]))
            return -1;
    p->how = "powercap";
    return 0;
}

static int limit_frequencies(struct rmd_power *p, const char *root, struct rmd_power_cap cap)
{
    if (!cap.percent)
        return 1;
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++) {
        uint64_t highest, lowest;
        struct rmd_sysfile high = rmd_sysfile(root, CPU "cpuinfo_max_freq", cpu);
        struct rmd_sysfile low = rmd_sysfile(root, CPU "cpuinfo_min_freq", cpu);
        if (!rmd_sysfile_read(&high, &highest) || !rmd_sysfile_read(&low, &lowest))
            continue; /* offline, or a hole in the numbers */
        double f = fmax((double)lowest, (double)highest * cbrt(cap.amount / 100));
        if (!turn(p, rmd_sysfile(root, CPU "scaling_max_freq", cpu), f))
            return -1;
    }
    p->how = "cpufreq";
    return p->count ? 0 : 1;
}

int rmd_power_limit(struct rmd_power *p, const char *root, struct rmd_power_cap cap)
{
    *p = (struct rmd_power){.how = ""};
    int failed = limit_packages(p, root, cap);
    if (failed > 0)
        failed = limit_frequencies(p, root, cap);
    if (!failed)
        return 0;
    int saved = failed > 0 ? ENOTSUP : errno;
    rmd_power_restore(p);
    errno = saved;
    return -1;
}

void rmd_power_restore(struct rmd_power *p)
{
    while (p->count) {
        struct rmd_power_knob *k = &p->knob[--p->count];
        rmd_sysfile_write(&k->file, k->before);
    }
    free(p->knob);
    p->knob = NULL;
}
