/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.c - see machine.h.  A timer runs only while a policy wants samples. */
#define _GNU_SOURCE
#include "rmd/users/machine.h"
#include "rmd/host/delivery.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/config/persisted_orders.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_MS = 500 };

/* Written by rmd's main thread, in the functions of this file. */
static struct {
    struct rmd_source timer;
    void (*sampled)(void);
    const char *root;
    unsigned ncores;
    int os_cpu[INV_MAX_CORES];
    bool on;
    struct rmd_delivery delivery;
    struct rmd_power power;
    void (*store)(int fd); /* of rmd_persisted_save_power */
} machine = {.timer = {.fd = -1}};

static void take_sample(void)
{
    rmd_delivery_sample(&machine.delivery, machine.root, machine.os_cpu, machine.ncores);
}

static void sample_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    take_sample();
    machine.sampled();
}

void rmd_machine_sample(bool on)
{
    if (machine.timer.fd < 0 || on == machine.on)
        return;
    rmd_ring_every(&machine.timer, on ? SAMPLE_MS : 0);
    memset(&machine.delivery, 0, sizeof machine.delivery);
    machine.on = on;
    if (on)
        take_sample(); /* to count from */
}

const double *rmd_machine_delivered(void)
{
    return machine.delivery.delivered;
}

int rmd_machine_watch(const struct inv_topology *topology, const char *root,
                      void (*sampled)(void))
{
    if (topology->emulated && !*root)
        return 0; /* what real cores deliver says nothing */
    for (unsigned c = 0; c < topology->ncores; c++)
        machine.os_cpu[c] = topology->emulated ? (int)c : topology->os_cpu[c];
    machine.ncores = topology->ncores;
    machine.root = root;
    machine.sampled = sampled;
    return rmd_timer_open(&machine.timer, sample_timer_expired);
}

static void save_power(const struct rmd_power_knob *knob, unsigned count)
{
    if (machine.store)
        rmd_persisted_save_power(knob, count, machine.store);
}

/* Its end never came. */
static bool undo_former_cap(const char *root)
{
    const struct rmd_power_knob *knob;
    unsigned count = rmd_persisted_power(&knob);
    if (!count)
        return true;
    if (rmd_power_put_back(root, knob, count)) {
        rmd_log(RMD_NOTICE, "the power cap of an rmd that was killed is undone");
        save_power(NULL, 0);
        return true;
    }
    rmd_log(RMD_WARNING, "the power cap of an rmd that was killed cannot be undone: %s",
            strerror(errno));
    return false;
}

bool rmd_machine_cap(const char *root, struct rmd_power_cap cap, void (*store)(int fd))
{
    machine.store = store;
    bool undone = undo_former_cap(root);
    if (cap.amount <= 0)
        return true;
    if (undone && !rmd_power_limit(&machine.power, root, cap, save_power)) {
        rmd_debug("power is capped by %s", machine.power.how);
        return true;
    }
    if (errno == ENOTSUP)
        rmd_error("--power-cap: this machine has no powercap%s",
                  cap.percent ? " nor cpufreq" : "; where it has cpufreq, give a percentage");
    else if (errno == ECANCELED)
        rmd_error(
            "--power-cap: a limit would have no effect, since %s says 0: write 1 there, unless "
            "the firmware has locked it",
            machine.power.off.path);
    else
        rmd_error("--power-cap: cannot be set: %s%s", strerror(errno),
                  errno == EROFS ? ": for systemd's unit see rmd(8), Power cap" : "");
    return false;
}

void rmd_machine_close(void)
{
    rmd_power_restore(&machine.power);
}
