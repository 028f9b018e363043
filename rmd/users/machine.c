/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.c - see machine.h.  A timer runs only while a policy wants samples. */
#define _GNU_SOURCE
#include "rmd/users/machine.h"
#include "libinvasive/base/now.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_MS = 500 };

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

/* The means of samples follow by themselves. */
void rmd_machine_speeds_changed(struct rmd_machine_state *m)
{
    if (!m->on)
        rmd_delivery_reset(&m->delivery, m->topology);
}

int rmd_machine_watch(struct rmd_machine_state *m, const struct inv_topology *topology,
                      const char *root, void (*sampled)(void),
                      void (*limited)(const struct rmd_heat_limit *limit))
{
    m->topology = topology;
    rmd_delivery_reset(&m->delivery, topology);
    if (topology->emulated && !*root)
        return 0; /* what real cores deliver says nothing */
    for (unsigned c = 0; c < topology->ncores; c++)
        m->os_cpu[c] = topology->emulated ? (int)c : topology->os_cpu[c];
    m->root = root;
    m->sampled = sampled;
    return rmd_timer_open(&m->timer, sample_timer_expired) ||
                   rmd_heat_open(&m->heat, root, &m->power, m->os_cpu, topology->ncores, limited)
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
