/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * machine.c - files of /proc and /sys, whose text a container, an emulation or a broken driver may
 * have made up: quotas of control groups, temperatures, counters of energy, settings of power, CPUs
 * that are online and what each CPU has run; and speeds of cores on a command line.
 *
 * The first byte chooses the reader, and each file that is opened is the next piece of the input: a
 * byte says how long it is, or that there is no such file.  A pattern matches as many files.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_FILE = 0xff, LINES = 0xfe, FILES = 3, OPEN = 4 /* at a time, at most */ };

static struct fuzz_input input;
static char *matched[FILES + 1];

/* LINES: a file as long as all of the rest. */
static FILE *fuzz_open(void)
{
    static char texts[OPEN][1024];
    static unsigned opened;
    char *text = texts[opened++ % OPEN];
    uint32_t bytes = fuzz_number(&input, 1);
    errno = ENOENT;
    if (bytes == NO_FILE || !input.left)
        return NULL;
    bytes = bytes == LINES || bytes > input.left ? (uint32_t)input.left : bytes;
    bytes = bytes < sizeof texts[0] ? bytes : (uint32_t)sizeof texts[0];
    fuzz_take(&input, text, bytes);
    return fmemopen(text, bytes, "r");
}

static int fuzz_glob(const char *pattern, glob_t *found)
{
    static char path[FILES][640];
    size_t n = fuzz_number(&input, 1) % (FILES + 1);
    for (size_t i = 0; i < n; i++) {
        snprintf(path[i], sizeof path[i], "%s", pattern);
        for (char *star; (star = strchr(path[i], '*'));)
            *star = (char)('0' + i);
        matched[i] = path[i];
    }
    *found = (glob_t){.gl_pathc = n, .gl_pathv = matched};
    return n ? 0 : GLOB_NOMATCH;
}

#define fopen(path, mode) ((void)(path), fuzz_open())
#define open(path, ...) ((void)(path), -1)
#define glob(pattern, flags, error, found) fuzz_glob(pattern, found)
#define globfree(found) ((void)(found))
#include "../../rmd/host/sysfile.c"
#undef open
#include "../../rmd/host/delivery.c"
#include "../../rmd/host/online.c"
#include "../../rmd/power/power.c"
#include "../../rmd/power/energy.c"
#include "../../rmd/power/chips.c"
#include "../../rmd/power/sensors.c"
#include "../../rmd/power/thermal.c"
#include "../../rmd/quota/quota.c"
#undef fopen
#undef glob
#include "libinvasive/table/speeds.h"
#include "rmd/loop/log.h"

static void need(bool good)
{
    if (!good)
        abort();
}

static void read_quota(void)
{
    struct rmd_quota q;
    uint64_t periods, throttled;
    rmd_quota_of(&q, "", 1);
    double cores = rmd_quota_cores(&q);
    need(q.quota_ns ? *q.group && cores > 0 && cores <= 1e9 : !*q.group && cores <= 0);
    need(memchr(q.group, '\0', sizeof q.group) && memchr(q.nonsense, '\0', sizeof q.nonsense));
    rmd_quota_periods(&q, &periods, &throttled);
}

static void read_heat(void)
{
    static struct rmd_sensors s;
    static struct rmd_chips chips = {.count = 2, .known = true, .package = {0, 7}, .of_cpu = {0, 1}};
    double part = 1;
    memset(&s, 0, sizeof s);
    s.all.hottest = -1;
    for (uint64_t look = 1; look <= 4; look++) {
        double last = s.all.hottest;
        rmd_sensors_look(&s, "", &chips, look * 40000000000); /* from the third on some are given up */
        double now = s.all.hottest;
        need(s.all.read ? now >= 0 && now <= 200 : now <= last && now >= last);
        need(s.all.missing <= s.count && s.count <= RMD_SENSORS && s.all.known == s.count);
        need(s.chip[0].read + s.chip[1].read >= s.all.read);
        double before = last < 0 ? now : last;
        part = s.all.read ? rmd_thermal_next(part, now, before, RMD_THERMAL_LEAST) : part;
        need(part >= RMD_THERMAL_SLOWEST && part <= 1);
    }
    unsigned present = s.count - s.all.missing;
    rmd_sensors_forget_missing(&s);
    need(s.count == present && !s.all.missing && s.chip[0].known <= present);
}

static void read_energy(void)
{
    struct rmd_energy e;
    struct rmd_energy_share one = {0}, other = {0};
    rmd_energy_open(&e, "", 2);
    need(e.count <= RMD_ENERGY_COUNTERS && (e.state != INV_ENERGY_COUNTED || e.count));
    rmd_energy_join(&e, &one, 1);
    rmd_energy_join(&e, &other, 2);
    rmd_energy_sample(&e);
    rmd_energy_leave(&e, &one, 5);
    rmd_energy_leave(&e, &other, 5);
    need(!e.first);
}

static void ignore_note(void *context, const struct rmd_power_knob *knob, unsigned count)
{
    (void)context, (void)knob;
    need(count <= RMD_POWER_KNOBS);
}

/* Nothing can be written, so nothing stays set. */
static void read_power(void)
{
    static struct rmd_power p;
    static double part[RMD_POWER_KNOBS];
    struct rmd_power_cap cap = {.amount = 1 + fuzz_number(&input, 1) % 100, .percent = fuzz_number(&input, 1) % 2};
    need(rmd_power_limit(&p, "", cap, ignore_note, NULL) && !p.count);
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++)
        part[cpu] = 0.5;
    rmd_power_slow(&p, part);
    need(part[0] >= 1 && part[0] <= 1);
}

static void read_cpus(void)
{
    static struct inv_topology t;
    static struct rmd_delivery d;
    bool away[INV_MAX_CORES];
    int os_cpu[] = {0, 1, 5, 7};
    t.ncores = 4;
    for (unsigned c = 0; c < t.ncores; c++)
        t.os_cpu[c] = os_cpu[c];
    need(rmd_online("/", &t, NULL, away) < t.ncores);
    rmd_speeds_find(&t, "");
    rmd_delivery_reset(&d, &t);
    rmd_delivery_sample(&d, "", os_cpu, &t);
    rmd_delivery_sample(&d, "", os_cpu, &t);
    for (unsigned c = 0; c < t.ncores; c++)
        need(t.speed[c] <= INV_WHOLE_SPEED && d.delivered[c] >= 0 && d.delivered[c] <= 1);
}

static void read_speeds(void)
{
    char text[128] = "";
    unsigned short speed[INV_MAX_CORES];
    fuzz_take(&input, text, input.left < sizeof text - 1 ? input.left : sizeof text - 1);
    unsigned n = inv_speeds_parse(text, INV_MAX_CORES, speed);
    need(n <= INV_MAX_CORES);
    for (unsigned c = 0; c < n; c++)
        need(speed[c] > 0 && speed[c] <= INV_WHOLE_SPEED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const readers[])(void) = {read_quota, read_heat,  read_energy,
                                            read_power, read_cpus, read_speeds};
    input = (struct fuzz_input){data, bytes};
    rmd_log_set_level(RMD_ERROR);
    readers[fuzz_number(&input, 1) % (sizeof readers / sizeof *readers)]();
    return 0;
}
