/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_others.c - for how long other programs had our cores while the command ran: the part of
 * the loss in parallel efficiency that the command has not caused.
 *
 * The time is the CPU time on our cores (/proc/stat) less that of these processes: the command and
 * the processes that it has waited for, our rmd, and invade.  They may have run on other cores,
 * too, so the other programs had at least this time.  The report has no number if it is not known:
 *   - a service gives out the cores, or there are several nodes;
 *   - /proc/stat does not add up to the time that has passed;
 *   - CPU time of our processes is missing from that of the command;
 *   - one of our processes goes on.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/now.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double of_clock(clockid_t clock) { return 1e-9 * (double)inv_clock_ns(clock); }

double invade_cpu_of_children(void)
{
    struct rusage u;
    return getrusage(RUSAGE_CHILDREN, &u)
               ? 0
               : (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                     1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double of_rmd(pid_t rmd)
{
    clockid_t clock;
    return clock_getcpuclockid(rmd, &clock) ? 0 : of_clock(clock);
}

/* Reads the times of the CPUs in the set.  False: one of them is missing. */
static bool read_stat(const struct inv_cpus *cpus, struct invade_load *load)
{
    FILE *f = fopen("/proc/stat", "re");
    char line[512];
    int seen = 0;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    while (f && fgets(line, sizeof line, f)) {
        unsigned cpu;
        uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
        if (sscanf(line,
                   "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %" SCNu64 " %" SCNu64,
                   &cpu, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 9 ||
            cpu >= INV_MAX_CPUS || !inv_cpus_has(cpus, cpu))
            continue;
        seen++;
        load->busy += tick * (double)(user + nice + system);
        load->all += tick * (double)(user + nice + system + idle + iowait + irq + softirq + steal);
    }
    if (f)
        fclose(f);
    return seen == inv_cpus_count(cpus);
}

struct invade_load invade_load_now(const struct invade_manager *m)
{
    struct invade_load load = {.now_ns = inv_now_ns(), .children = invade_cpu_of_children()};
    struct inv_cpus cpus;
    load.known = m->pid && !m->emulated && !inv_cpus_get(0, &cpus) &&
                 inv_cpus_count(&cpus) == (int)m->ncores && read_stat(&cpus, &load);
    if (load.known)
        load.managing = of_rmd(m->pid) + of_clock(CLOCK_PROCESS_CPUTIME_ID);
    return load;
}

/* Do the times of the CPUs add up to the time that has passed?  Counting in ticks causes an error
 * of less than a tenth. */
static bool adds_up(double told, double passed)
{
    return told > 0.9 * passed && told < 1.1 * passed;
}

double invade_load_of_others(const struct invade_load *before, const struct invade_load *after,
                             unsigned cores, double cpu)
{
    double passed = 1e-9 * (double)(after->now_ns - before->now_ns) * cores;
    double children = after->children - before->children;
    double busy = after->busy - before->busy;
    if (!before->known || !after->known || !adds_up(after->all - before->all, passed) ||
        cpu > 1.02 * children + 0.05)
        return -1;
    double others = busy - children - (after->managing - before->managing);
    return others > 0 ? others : 0;
}
