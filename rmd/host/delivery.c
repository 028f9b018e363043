/* SPDX-License-Identifier: GPL-3.0-or-later */
/* delivery.c - lines "cpuN user nice system idle iowait irq softirq steal ..." of /proc/stat. */
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

static void update_delivery(struct rmd_delivery *d, unsigned core, struct rmd_cpu_time now)
{
    struct rmd_cpu_time *last = &d->last[core];
    bool first = !last->busy && !last->steal;
    uint64_t busy = now.busy - last->busy, steal = now.steal - last->steal;
    if (now.busy < last->busy || now.steal < last->steal || first) {
        *last = now; /* the first look, or it was offline meanwhile */
        return;
    }
    if (busy + steal < TICKS_LEAST)
        return; /* wait for more */
    *last = now;
    double part = (double)busy / (double)(busy + steal);
    double *known = &d->delivered[core];
    *known = *known > 0 ? *known + (part - *known) / 4 : part;
    if (*known < 0.01)
        *known = 0.01; /* 0 means that nothing is known */
}

bool rmd_delivery_sample(struct rmd_delivery *d, const char *root, const int *os_cpu,
                         unsigned ncores)
{
    struct rmd_sysfile file = rmd_sysfile(root, "/proc/stat");
    FILE *f = fopen(file.path, "re");
    char line[512];
    if (!f) {
        memset(d, 0, sizeof *d);
        return false;
    }
    unsigned guess = 0; /* CPUs come in order, and so do most cores */
    while (fgets(line, sizeof line, f)) {
        int cpu;
        struct rmd_cpu_time now;
        if (!parse_cpu_line(line, &cpu, &now))
            continue;
        for (unsigned tries = 0; tries < ncores; tries++, guess++) {
            guess = guess < ncores ? guess : 0;
            if (os_cpu[guess] != cpu)
                continue;
            update_delivery(d, guess, now);
            break;
        }
    }
    fclose(f);
    return true;
}
