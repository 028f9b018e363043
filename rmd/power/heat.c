/* SPDX-License-Identifier: GPL-3.0-or-later */
/* heat.c - see heat.h.  A timer looks at the sensors while there is a limit. */
#define _GNU_SOURCE
#include "rmd/power/heat.h"
#include "libinvasive/base/now.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* RETRY: a driver that is loaded again, or firmware that is busy, takes seconds. */
enum { RETRY_S = 60 };

const struct rmd_heat_seen *rmd_heat_of_chip(const struct rmd_heat *h, unsigned chip)
{
    const struct rmd_heat_seen *seen = &h->sensors.chip[chip];
    return seen->known ? seen : &h->sensors.all;
}

double rmd_heat_least(const struct rmd_heat *h)
{
    double least = 1;
    for (unsigned i = 0; i < h->chips.count; i++)
        least = fmin(least, h->part[i]);
    return least;
}

/* Are frequencies to be set, or to be tried again? */
static bool is_frequency_due(const struct rmd_heat *h)
{
    return !h->by_cores || inv_now_ns() >= h->retry_ns || h->online != h->sensors.online;
}

/* failed: frequencies could not be set now, with errno. */
static void log_frequencies(const struct rmd_heat *h, bool failed)
{
    if (!h->threshold && failed && errno != ENOTSUP)
        rmd_log(RMD_WARNING, "frequencies cannot be set (%s): CPUs stay slower without a limit",
                strerror(errno));
    else if (h->threshold && failed && !h->by_cores)
        rmd_log(RMD_NOTICE,
                "frequencies cannot be set (%s): until they can, cores are left out to limit heat",
                strerror(errno));
    else if (h->threshold && !failed && h->by_cores)
        rmd_log(RMD_NOTICE, "frequencies can be set again: heat is limited by them");
}

/* The part for the CPUs of this chip; CPUs of no chip go with the slowest. */
static double part_of_chip(const struct rmd_heat *h, unsigned chip)
{
    return chip < h->chips.count ? h->part[chip] : rmd_heat_least(h);
}

static void set_frequencies(struct rmd_heat *h)
{
    for (int cpu = 0; cpu < RMD_POWER_KNOBS; cpu++)
        h->cpu_speed[cpu] = part_of_chip(h, rmd_chips_of_cpu(&h->chips, cpu));
    bool failed = rmd_power_slow(h->power, h->cpu_speed) != 0;
    log_frequencies(h, failed);
    h->by_cores = failed;
    h->retry_ns = inv_now_ns() + RETRY_S * UINT64_C(1000000000);
    h->online = h->sensors.online;
}

static void tell_limit(struct rmd_heat *h)
{
    struct rmd_heat_limit *l = &h->limit;
    for (unsigned i = 0; i <= RMD_NO_CHIP; i++)
        l->used[i] = h->by_cores ? part_of_chip(h, i) : 1;
    for (unsigned c = 0; c < h->ncores; c++) {
        int cpu = h->os_cpu[c];
        l->chip[c] = (unsigned char)rmd_chips_of_cpu(&h->chips, cpu);
        l->speed[c] = cpu >= 0 && cpu < RMD_POWER_KNOBS ? h->cpu_speed[cpu] : 1;
    }
    h->limited(l);
}

static void apply_parts(struct rmd_heat *h)
{
    if (is_frequency_due(h))
        set_frequencies(h);
    tell_limit(h);
}

/* The chip's part of its highest speed for the next second.  The rise from `last`, the temperature at
 * the look before, is known only if both looks read the same sensors. */
static double next_part(const struct rmd_heat *h, unsigned chip, double last)
{
    const struct rmd_heat_seen *seen = rmd_heat_of_chip(h, chip);
    if (!seen->read)
        return h->part[chip];
    double before = seen->changed ? seen->hottest : last;
    double part = rmd_thermal_next(h->part[chip], seen->hottest, before, h->threshold);
    return seen->missing ? fmin(part, h->part[chip]) : part;
}

/* A chip that is new has the speed of the slowest one: nothing is known of its temperature before. */
static void find_chips(struct rmd_heat *h)
{
    unsigned had = h->chips.count;
    double least = rmd_heat_least(h);
    rmd_chips_find(&h->chips, h->root);
    for (unsigned i = had; i < h->chips.count; i++)
        h->part[i] = least;
}

/* Logs, while a limit holds, when no sensor can be read any more, and when one can again. */
static void look_at_sensors(struct rmd_heat *h)
{
    unsigned had = h->sensors.all.read, online = h->sensors.online;
    rmd_sensors_look(&h->sensors, h->root, &h->chips, inv_now_ns());
    if (online != h->sensors.online)
        find_chips(h);
    if (!h->threshold || !had == !h->sensors.all.read)
        return;
    if (h->sensors.all.read)
        rmd_log(RMD_NOTICE, "the temperature of the CPUs is known again");
    else
        rmd_log(RMD_WARNING,
                "no sensor tells the temperature of the CPUs any more: the limit of %.0f %% stays",
                100 * rmd_heat_least(h));
}

static void heat_timer_expired(struct rmd_source *source, uint32_t events)
{
    struct rmd_heat *h = (void *)((char *)source - offsetof(struct rmd_heat, timer));
    double last[RMD_CHIPS];
    (void)events;
    if (!rmd_timer_rang(source) || !h->threshold)
        return;
    for (unsigned i = 0; i < RMD_CHIPS; i++)
        last[i] = rmd_heat_of_chip(h, i)->hottest;
    look_at_sensors(h);
    if (!h->sensors.all.read)
        return;
    bool changed = false;
    for (unsigned i = 0; i < h->chips.count; i++) {
        double part = next_part(h, i, last[i]);
        changed |= part < h->part[i] || part > h->part[i];
        h->part[i] = part;
    }
    if (changed || (h->by_cores && is_frequency_due(h)))
        apply_parts(h);
}

bool rmd_heat_keep_below(struct rmd_heat *h, unsigned degrees)
{
    if (!h->threshold)
        h->sensors.count = 0; /* without a limit no sensor is watched, so none is missed */
    if (h->timer.ready) {
        find_chips(h);
        look_at_sensors(h);
    }
    if (degrees && !h->sensors.all.read) {
        errno = ENODEV;
        return false;
    }
    rmd_sensors_forget_missing(&h->sensors);
    h->threshold = degrees;
    h->retry_ns = 0; /* the frequencies are tried at the next change of the speed */
    if (!degrees && (rmd_heat_least(h) < 1 || h->by_cores)) { /* some may be lower than the part */
        for (unsigned i = 0; i < RMD_CHIPS; i++)
            h->part[i] = 1;
        apply_parts(h);
    }
    h->by_cores &= degrees > 0;
    if (h->timer.ready)
        rmd_ring_every(&h->timer, degrees ? RMD_THERMAL_PERIOD_MS : 0);
    return true;
}

int rmd_heat_open(struct rmd_heat *h, const char *root, struct rmd_power *power, const int *os_cpu,
                  unsigned ncores, void (*limited)(const struct rmd_heat_limit *limit))
{
    h->root = root;
    h->power = power;
    h->os_cpu = os_cpu;
    h->ncores = ncores;
    h->limited = limited;
    for (unsigned i = 0; i < RMD_CHIPS; i++)
        h->part[i] = 1;
    for (unsigned cpu = 0; cpu < RMD_POWER_KNOBS; cpu++)
        h->cpu_speed[cpu] = 1;
    return rmd_timer_open(&h->timer, heat_timer_expired);
}
