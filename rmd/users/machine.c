/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.c - see machine.h.  A timer runs only while a policy wants samples. */
#define _GNU_SOURCE
#include "rmd/users/machine.h"
#include "libinvasive/base/now.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* RETRY: a driver that is loaded again, or firmware that is busy, takes seconds. */
enum { SAMPLE_MS = 500, RETRY_S = 60 };

static void take_sample(struct rmd_machine_state *m)
{
    rmd_delivery_sample(&m->delivery, m->root, m->os_cpu, m->topology);
}

static void sample_timer_expired(struct rmd_source *source, uint32_t events)
{
    struct rmd_machine_state *m =
        (void *)((char *)source - offsetof(struct rmd_machine_state, timer));
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    take_sample(m);
    m->sampled();
}

void rmd_machine_sample(struct rmd_machine_state *m, bool on)
{
    if (!m->timer.ready || on == m->on)
        return;
    rmd_ring_every(&m->timer, on ? SAMPLE_MS : 0);
    rmd_delivery_reset(&m->delivery, m->topology);
    m->on = on;
    if (on)
        take_sample(m); /* to count from */
}

const double *rmd_machine_delivered(const struct rmd_machine_state *m)
{
    return m->delivery.delivered;
}

/* --- heat */

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

static void set_frequencies(struct rmd_machine_state *m)
{
    struct rmd_heat *h = &m->heat;
    bool failed = rmd_power_slow(&m->power, h->part) != 0;
    log_frequencies(h, failed);
    h->by_cores = failed;
    h->retry_ns = inv_now_ns() + RETRY_S * UINT64_C(1000000000);
    h->online = h->sensors.online;
}

static void set_speed(struct rmd_machine_state *m, double part)
{
    struct rmd_heat *h = &m->heat;
    bool left_out = h->by_cores;
    h->part = part;
    if (is_frequency_due(h))
        set_frequencies(m);
    if (h->by_cores || left_out)
        h->limited(h->by_cores ? part : 1);
}

/* The part of the highest speed for the next second.  The rise from `last`, the temperature at the
 * look before, is known only if both looks read the same sensors. */
static double next_part(const struct rmd_heat *h, double last)
{
    const struct rmd_sensors *s = &h->sensors;
    double before = s->changed ? s->hottest : last;
    double part = rmd_thermal_next(h->part, s->hottest, before, h->threshold);
    return s->missing ? fmin(part, h->part) : part;
}

/* Logs, while a limit holds, when no sensor can be read any more, and when one can again. */
static void look_at_sensors(struct rmd_machine_state *m)
{
    struct rmd_heat *h = &m->heat;
    unsigned had = h->sensors.read;
    rmd_sensors_look(&h->sensors, m->root, inv_now_ns());
    if (!h->threshold || !had == !h->sensors.read)
        return;
    if (h->sensors.read)
        rmd_log(RMD_NOTICE, "the temperature of the CPUs is known again");
    else
        rmd_log(RMD_WARNING,
                "no sensor tells the temperature of the CPUs any more: the limit of %.0f %% stays",
                100 * h->part);
}

static void heat_timer_expired(struct rmd_source *source, uint32_t events)
{
    struct rmd_machine_state *m =
        (void *)((char *)source - offsetof(struct rmd_machine_state, heat.timer));
    struct rmd_heat *h = &m->heat;
    (void)events;
    if (!rmd_timer_rang(source) || !h->threshold)
        return;
    double last = h->sensors.hottest;
    look_at_sensors(m);
    if (!h->sensors.read)
        return;
    double part = next_part(h, last);
    if (part < h->part || part > h->part || (h->by_cores && is_frequency_due(h)))
        set_speed(m, part);
}

bool rmd_machine_cool(struct rmd_machine_state *m, unsigned degrees)
{
    struct rmd_heat *h = &m->heat;
    if (!h->threshold)
        h->sensors.count = 0; /* without a limit no sensor is watched, so none is missed */
    if (h->timer.ready)
        look_at_sensors(m);
    if (degrees && !h->sensors.read) {
        errno = ENODEV;
        return false;
    }
    rmd_sensors_forget_missing(&h->sensors);
    h->threshold = degrees;
    h->retry_ns = 0; /* the frequencies are tried at the next change of the speed */
    if (!degrees && (h->part < 1 || h->by_cores)) /* by_cores: some may be lower than the part */
        set_speed(m, 1);
    h->by_cores &= degrees > 0;
    if (h->timer.ready)
        rmd_ring_every(&h->timer, degrees ? RMD_THERMAL_PERIOD_MS : 0);
    return true;
}

int rmd_machine_watch(struct rmd_machine_state *m, const struct inv_topology *topology,
                      const char *root, void (*sampled)(void), void (*limited)(double part))
{
    m->heat.part = 1;
    m->topology = topology;
    rmd_delivery_reset(&m->delivery, topology);
    if (topology->emulated && !*root)
        return 0; /* what real cores deliver says nothing */
    for (unsigned c = 0; c < topology->ncores; c++)
        m->os_cpu[c] = topology->emulated ? (int)c : topology->os_cpu[c];
    m->root = root;
    m->sampled = sampled;
    m->heat.limited = limited;
    return rmd_timer_open(&m->timer, sample_timer_expired) ||
                   rmd_timer_open(&m->heat.timer, heat_timer_expired)
               ? -1
               : 0;
}

static void save_power(void *orders, const struct rmd_power_knob *knob, unsigned count)
{
    if (orders)
        rmd_persisted_save_power(orders, knob, count);
}

/* The former rmd was killed before it could undo its cap. */
static bool undo_former_cap(const char *root, struct rmd_persisted *orders)
{
    const struct rmd_power_knob *knob;
    unsigned count = orders ? rmd_persisted_power(orders, &knob) : 0;
    if (!count)
        return true;
    if (rmd_power_restore_former(root, knob, count)) {
        rmd_log(RMD_NOTICE, "the power cap of an rmd that was killed is undone");
        save_power(orders, NULL, 0);
        return true;
    }
    rmd_log(RMD_WARNING, "the power cap of an rmd that was killed cannot be undone: %s",
            strerror(errno));
    return false;
}

bool rmd_machine_cap(struct rmd_machine_state *m, const char *root, struct rmd_power_cap cap,
                     struct rmd_persisted *orders)
{
    bool undone = undo_former_cap(root, orders);
    m->power.root = root;
    m->power.note = save_power;
    m->power.context = orders;
    if (cap.amount <= 0)
        return true;
    if (undone && !rmd_power_limit(&m->power, root, cap, save_power, orders)) {
        rmd_debug("power is capped by %s", m->power.how);
        return true;
    }
    if (errno == ENOTSUP)
        rmd_error("--power-cap: this machine has no powercap%s",
                  cap.percent ? " nor cpufreq" : "; where it has cpufreq, give a percentage");
    else if (errno == ECANCELED)
        rmd_error(
            "--power-cap: a limit would have no effect, since %s says 0: write 1 there, unless "
            "the firmware has locked it",
            m->power.off.path);
    else
        rmd_error("--power-cap: cannot be set: %s%s", strerror(errno),
                  errno == EROFS ? ": for systemd's unit see rmd(8), Power cap" : "");
    return false;
}

void rmd_machine_close(struct rmd_machine_state *m)
{
    rmd_power_restore(&m->power);
}
