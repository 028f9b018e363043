/* SPDX-License-Identifier: GPL-3.0-or-later */
/* delivery.c - see delivery.h; lines "cpuN user nice system idle iowait irq softirq steal ..." of /proc/stat. */
#include "rmd/host/delivery.h"
#include "rmd/host/sysfile.h"

#include <inttypes.h>
#include <string.h>

enum { TICKS_LEAST = 5 };

/* user and nice have the guests' time in them. */
static bool parse_cpu_line(const char *line, int *cpu, struct rmd_cpu_time *t)
{
    uint64_t user, nice, system, idle, iowait, irq, softirq;
    if (sscanf(line,
               "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               cpu, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &t->steal) != 9)
        return false;
    t->busy = user + nice + system + irq + softirq;
    return true;
}

static bool read_capacities(const struct inv_topology *t, const char *root, uint64_t *capacity,
                            uint64_t *largest)
{
    for (unsigned c = 0; c < t->ncores; c++) {
        struct rmd_sysfile file = rmd_sysfile(root, "/sys/devices/system/cpu/cpu%d/cpu_capacity",
                                              t->os_cpu[c]);
        if (!rmd_sysfile_read(&file, &capacity[c]) || !capacity[c] || capacity[c] > UINT32_MAX)
            return false;
        if (capacity[c] > *largest)
            *largest = capacity[c];
    }
    return true;
}

void rmd_speeds_find(struct inv_topology *t, const char *root)
{
    uint64_t capacity[INV_MAX_CORES], largest = 0;
    if (t->emulated || !read_capacities(t, root, capacity, &largest))
        return;
    for (unsigned c = 0; c < t->ncores; c++) {
        t->speed[c] = (unsigned short)((capacity[c] * INV_WHOLE_SPEED + largest / 2) / largest);
        t->speed[c] += !t->speed[c]; /* 0 is no speed */
    }
}

static double speed_of(const struct inv_topology *t, unsigned core)
{
    return (double)t->speed[core] / INV_WHOLE_SPEED;
}

void rmd_delivery_reset(struct rmd_delivery *d, const struct inv_topology *t)
{
    memset(d, 0, sizeof *d);
    for (unsigned c = 0; inv_topology_uneven(t) && c < t->ncores; c++)
        d->delivered[c] = speed_of(t, c);
}

static void update_delivery(struct rmd_delivery *d, unsigned core, struct rmd_cpu_time now,
                            double speed)
{
    struct rmd_cpu_time *last = &d->last[core];
    bool first = !last->busy && !last->steal;
    uint64_t busy = now.busy - last->busy, steal = now.steal - last->steal;
    if (now.busy < last->busy || now.steal < last->steal || first) {
        *last = now; /* the first look, or it was offline meanwhile */
        return;
    }
    double all = (double)busy + (double)steal; /* as integers, nonsense may overflow */
    if (all < TICKS_LEAST)
        return; /* wait for more */
    *last = now;
    double part = speed * (double)busy / all;
    double *known = &d->delivered[core];
    *known = *known > 0 ? *known + (part - *known) / 4 : part;
    if (*known < 0.01)
        *known = 0.01; /* 0 means that nothing is known */
}

bool rmd_delivery_sample(struct rmd_delivery *d, const char *root, const int *os_cpu,
                         const struct inv_topology *t)
{
    struct rmd_sysfile file = rmd_sysfile(root, "/proc/stat");
    FILE *f = fopen(file.path, "re");
    char line[512];
    if (!f) {
        rmd_delivery_reset(d, t);
        return false;
    }
    unsigned guess = 0; /* CPUs come in order, and so do most cores */
    while (fgets(line, sizeof line, f)) {
        int cpu;
        struct rmd_cpu_time now;
        if (!parse_cpu_line(line, &cpu, &now))
            continue;
        for (unsigned tries = 0; tries < t->ncores; tries++, guess++) {
            guess = guess < t->ncores ? guess : 0;
            if (os_cpu[guess] != cpu)
                continue;
            update_delivery(d, guess, now, speed_of(t, guess));
            break;
        }
    }
    fclose(f);
    return true;
}
