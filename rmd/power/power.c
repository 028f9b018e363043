/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * power.c - sysfs: class/powercap/intel-rapl:N is a package where its name says so (with a further
 * :M a part of one), else the platform, whose power is not the packages' alone; its constraint_0 is
 * the long-term one.  devices/system/cpu/cpuN/cpufreq has the frequencies.
 */
#define _GNU_SOURCE
#include "rmd/power/power.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZONE "/sys/class/powercap/intel-rapl:%u/"
#define LONG_TERM ZONE "constraint_0_"
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

static struct rmd_sysfile file_of(const char *root, const struct rmd_power_knob *k)
{
    return k->kind == RMD_POWER_PACKAGE ? rmd_sysfile(root, LONG_TERM "power_limit_uw", k->number)
                                        : rmd_sysfile(root, CPU "scaling_max_freq", k->number);
}

/* Plans to set it to `value`, or to leave it if it is less already. */
static bool plan_setting(struct rmd_power *p, enum rmd_power_kind kind, unsigned number,
                         double value)
{
    struct rmd_power_knob knob = {.kind = kind, .number = number};
    struct rmd_sysfile file = file_of(p->root, &knob);
    if (p->count == RMD_POWER_KNOBS || !rmd_sysfile_read(&file, &knob.before))
        return false;
    p->value[p->count] = (uint64_t)(value + 0.5);
    if (knob.before && knob.before < p->value[p->count])
        p->value[p->count] = knob.before;
    p->knob[p->count++] = knob;
    return true;
}

struct package {
    unsigned zone;
    uint64_t most; /* power that it may take, in microwatts */
};

static bool is_package(const char *root, unsigned zone)
{
    static const char kind[] = "package";
    char name[sizeof kind];
    struct rmd_sysfile file = rmd_sysfile(root, ZONE "name", zone);
    return rmd_sysfile_read_line(&file, name, sizeof name) && !strcmp(name, kind);
}

/* The package's power by its vendor, else its present limit. */
static bool power_of(const char *root, struct package *p)
{
    struct rmd_sysfile max = rmd_sysfile(root, LONG_TERM "max_power_uw", p->zone);
    struct rmd_sysfile now = rmd_sysfile(root, LONG_TERM "power_limit_uw", p->zone);
    return (rmd_sysfile_read(&max, &p->most) && p->most) || rmd_sysfile_read(&now, &p->most);
}

/* There may be other zones before and between them. */
static unsigned find_packages(const char *root, struct package found[ZONES_MAX])
{
    unsigned n = 0;
    for (unsigned zone = 0; zone < ZONES_MAX; zone++) {
        found[n].zone = zone;
        n += is_package(root, zone) && power_of(root, &found[n]);
    }
    return n;
}

/* Does a limit of this zone have no effect, since it is turned off, or locked by the firmware? */
static bool is_ineffective(const char *root, unsigned zone)
{
    uint64_t enabled;
    struct rmd_sysfile file = rmd_sysfile(root, ZONE "enabled", zone);
    return rmd_sysfile_read(&file, &enabled) && !enabled;
}

/* Plans the settings of the packages.  Returns 0; 1: the machine has none; -1 with errno. */
static int plan_packages(struct rmd_power *p, struct rmd_power_cap cap)
{
    struct package package[ZONES_MAX];
    unsigned n = find_packages(p->root, package);
    double all = 0;
    for (unsigned i = 0; i < n; i++)
        all += (double)package[i].most;
    if (all <= 0)
        return 1;
    double part = fmin(1, cap.percent ? cap.amount / 100 : cap.amount * 1e6 / all);
    for (unsigned i = 0; i < n; i++) {
        if (is_ineffective(p->root, package[i].zone)) {
            p->off = rmd_sysfile(p->root, ZONE "enabled", package[i].zone);
            errno = ECANCELED;
            return -1;
        }
        if (!plan_setting(p, RMD_POWER_PACKAGE, package[i].zone, part * (double)package[i].most))
            return -1;
    }
    p->how = "powercap";
    return 0;
}

static int plan_frequencies(struct rmd_power *p, struct rmd_power_cap cap)
{
    if (!cap.percent)
        return 1;
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++) {
        uint64_t highest, lowest;
        struct rmd_sysfile high = rmd_sysfile(p->root, CPU "cpuinfo_max_freq", cpu);
        struct rmd_sysfile low = rmd_sysfile(p->root, CPU "cpuinfo_min_freq", cpu);
        if (!rmd_sysfile_read(&high, &highest) || !rmd_sysfile_read(&low, &lowest))
            continue; /* offline, or a hole in the numbers */
        double f = fmax((double)lowest, (double)highest * cbrt(cap.amount / 100));
        if (!plan_setting(p, RMD_POWER_CPU, cpu, f))
            return -1;
    }
    p->how = "cpufreq";
    return p->count ? 0 : 1;
}

static bool write_settings(const struct rmd_power *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        struct rmd_sysfile file = file_of(p->root, &p->knob[i]);
        if (!rmd_sysfile_write(&file, p->value[i]))
            return false;
    }
    return true;
}

int rmd_power_limit(struct rmd_power *p, const char *root, struct rmd_power_cap cap,
                    rmd_power_note *note, void *context)
{
    p->root = root;
    p->note = note;
    p->context = context;
    p->count = 0;
    int failed = plan_packages(p, cap);
    if (failed > 0)
        failed = plan_frequencies(p, cap);
    if (failed) {
        p->count = 0;
        errno = failed > 0 ? ENOTSUP : errno;
        return -1;
    }
    p->note(p->context, p->knob, p->count);
    if (write_settings(p))
        return 0;
    int saved = errno;
    rmd_power_restore(p);
    errno = saved;
    return -1;
}

/* Adds the frequencies of all CPUs, unless the cap is by them.  False: there are none. */
static bool add_frequencies(struct rmd_power *p)
{
    unsigned had = p->count;
    for (unsigned i = 0; i < p->count; i++)
        if (p->knob[i].kind == RMD_POWER_CPU)
            return true;
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++)
        plan_setting(p, RMD_POWER_CPU, cpu, 1e18); /* leaves it as it is */
    if (p->count > had)
        p->note(p->context, p->knob, p->count);
    return p->count > had;
}

/* Sets a CPU to *part of its highest frequency, and *part as rmd_power_slow does.  Returns 1; 0: the
 * setting is no CPU's, or the CPU is offline; -1 with errno: writing failed. */
static int slow_setting(const struct rmd_power *p, unsigned i, double *part)
{
    const struct rmd_power_knob *knob = &p->knob[i];
    uint64_t highest, lowest = 0, full = p->value[i];
    struct rmd_sysfile high = rmd_sysfile(p->root, CPU "cpuinfo_max_freq", knob->number);
    struct rmd_sysfile low = rmd_sysfile(p->root, CPU "cpuinfo_min_freq", knob->number);
    struct rmd_sysfile file = file_of(p->root, knob);
    if (!rmd_sysfile_read(&high, &highest))
        return 0;
    rmd_sysfile_read(&low, &lowest);
    uint64_t f = (uint64_t)fmax((double)lowest, *part * (double)highest + 0.5);
    f = *part < 1 && f < full ? f : full;
    if (rmd_sysfile_write(&file, f)) {
        *part = full ? (double)f / (double)full : 1;
        return 1;
    }
    int error = errno;
    bool offline = !rmd_sysfile_read(&high, &highest); /* since a moment ago */
    errno = error;
    return offline ? 0 : -1;
}

int rmd_power_slow(struct rmd_power *p, double part[RMD_POWER_KNOBS])
{
    double got[RMD_POWER_KNOBS];
    unsigned set = 0;
    int error = add_frequencies(p) ? 0 : ENOTSUP;
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++)
        got[cpu] = 1;
    for (unsigned i = 0; i < p->count; i++) {
        unsigned cpu = p->knob[i].number;
        if (p->knob[i].kind != RMD_POWER_CPU || cpu >= RMD_POWER_KNOBS)
            continue;
        int done = slow_setting(p, i, &part[cpu]);
        if (done < 0)
            error = errno;
        if (done > 0)
            got[cpu] = part[cpu];
        set += done > 0;
    }
    memcpy(part, got, sizeof got);
    if (!error && !set)
        error = ENOTSUP; /* the driver is gone */
    errno = error;
    return error ? -1 : 0;
}

/* Leaves a setting out that cannot be restored since it is not there now, and says so of a CPU that
 * is offline.  Writing has failed with errno: cpufreq answers EBUSY for such a CPU, and keeps the
 * limit for when the CPU is online again.  False: it is there. */
static bool leave_out(const struct rmd_power_knob *knob, const struct rmd_sysfile *file)
{
    if (errno == EBUSY && knob->kind == RMD_POWER_CPU) {
        rmd_log(RMD_WARNING,
                "CPU %u is offline, and stays capped: write %llu to %s when it is online",
                knob->number, (unsigned long long)knob->before, file->path);
        return true;
    }
    return errno == ENOENT;
}

bool rmd_power_restore_former(const char *root, const struct rmd_power_knob *knob, unsigned count)
{
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        struct rmd_sysfile file = file_of(root, &knob[i]);
        if (!rmd_sysfile_write(&file, knob[i].before) && !leave_out(&knob[i], &file))
            error = errno;
    }
    errno = error;
    return !error;
}

void rmd_power_restore(struct rmd_power *p)
{
    if (p->count && rmd_power_restore_former(p->root, p->knob, p->count))
        p->note(p->context, NULL, 0);
    p->count = 0;
}
