/* SPDX-License-Identifier: GPL-3.0-or-later */
/* energy.c - see energy.h. */
#define _GNU_SOURCE
#include "rmd/power/energy.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <glob.h>
#include <string.h>

#define ZONES "/sys/class/powercap/intel-rapl:*"
#define SENSORS "/sys/class/hwmon/hwmon*/energy*_label"

/* --- counters */

static bool begins_with(const struct rmd_sysfile *file, const char *word)
{
    char text[16];
    return rmd_sysfile_read_line(file, text, sizeof text) && !strncmp(text, word, strlen(word));
}

/* A counter that cannot be read makes the sum worthless. */
static void add_counter(struct rmd_energy *e, const struct rmd_sysfile *file, uint64_t range)
{
    struct rmd_energy_counter *c = &e->counter[e->count];
    if (e->count == RMD_ENERGY_COUNTERS || e->state == INV_ENERGY_FORBIDDEN)
        return;
    *c = (struct rmd_energy_counter){.file = *file, .range = range};
    bool good = rmd_sysfile_read(file, &c->last);
    e->count += good;
    if (good || errno == EACCES || errno == EPERM)
        e->state = good ? INV_ENERGY_COUNTED : INV_ENERGY_FORBIDDEN;
}

static void add_zone(struct rmd_energy *e, const char *zone)
{
    struct rmd_sysfile name = rmd_sysfile(zone, "/name"), most = rmd_sysfile(zone, "/max_energy_range_uj");
    struct rmd_sysfile file = rmd_sysfile(zone, "/energy_uj");
    uint64_t range = 0;
    rmd_sysfile_read(&most, &range);
    if (begins_with(&name, "package"))
        add_counter(e, &file, range);
}

static void add_sensor(struct rmd_energy *e, const char *path)
{
    struct rmd_sysfile label = rmd_sysfile(path, "%s", "");
    struct rmd_sysfile file = label;
    char *end = strrchr(file.path, '_');
    if (!end || !begins_with(&label, "Esocket"))
        return;
    strcpy(end, "_input"); /* as long as "_label" */
    add_counter(e, &file, 0);
}

static void find_counters(struct rmd_energy *e, const char *pattern,
                          void (*add)(struct rmd_energy *, const char *))
{
    struct rmd_sysfile files = rmd_sysfile(e->root, "%s", pattern);
    glob_t found;
    if (!glob(files.path, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            add(e, found.gl_pathv[i]);
    globfree(&found);
}

void rmd_energy_open(struct rmd_energy *e, const char *root, unsigned cores)
{
    *e = (struct rmd_energy){.root = root, .cores = cores};
    find_counters(e, ZONES, add_zone);
    if (e->state == INV_ENERGY_NONE)
        find_counters(e, SENSORS, add_sensor);
}

/* Microjoules since the last call.  False: a counter has vanished. */
static bool read_counters(struct rmd_energy *e, uint64_t *used)
{
    *used = 0;
    for (unsigned i = 0; i < e->count; i++) {
        struct rmd_energy_counter *c = &e->counter[i];
        uint64_t now;
        if (!rmd_sysfile_read(&c->file, &now)) {
            rmd_log(RMD_WARNING, "the energy of jobs is not counted any more: %s: %s",
                    c->file.path, strerror(errno));
            e->state = INV_ENERGY_GONE;
            return false;
        }
        if (now >= c->last)
            *used += now - c->last;
        else if (c->range > c->last)
            *used += c->range - c->last + now; /* it has wrapped */
        c->last = now;
    }
    if (*used > INT64_MAX)
        *used = 0; /* no machine uses so much */
    return true;
}

/* --- processes */

/* At most `most`, whatever a process has told. */
static void count_time(struct rmd_energy_share *s, uint64_t ran_ns, uint64_t most)
{
    s->recent_ns = ran_ns > s->ran_ns ? ran_ns - s->ran_ns : 0;
    s->recent_ns = s->recent_ns < most ? s->recent_ns : most;
    s->ran_ns += s->recent_ns;
}

static void divide_since_last(struct rmd_energy *e, const struct rmd_energy_share *leaving,
                              uint64_t told_ns)
{
    uint64_t used, now = inv_now_ns(), most = (now - e->looked_ns) * e->cores;
    if (e->state != INV_ENERGY_COUNTED || !e->first || !read_counters(e, &used))
        return;
    uint64_t busy = rmd_machine_ran(e->root);
    double all = 0, of_all = busy > e->busy_ns && e->busy_ns ? (double)(busy - e->busy_ns) : 0;
    for (struct rmd_energy_share *s = e->first; s; s = s->next) {
        uint64_t ran = rmd_process_ran(s->pid);
        count_time(s, !ran && s == leaving ? told_ns : ran, most);
        all += 1 + (double)s->recent_ns; /* where none has computed: equal parts */
    }
    all = of_all > all ? of_all : all;
    for (struct rmd_energy_share *s = e->first; s; s = s->next)
        s->energy_uj += (uint64_t)((double)used * (1 + (double)s->recent_ns) / all);
    e->busy_ns = busy;
    e->looked_ns = now;
}

void rmd_energy_sample(struct rmd_energy *e) { divide_since_last(e, NULL, 0); }

void rmd_energy_join(struct rmd_energy *e, struct rmd_energy_share *s, pid_t pid)
{
    uint64_t before;
    divide_since_last(e, NULL, 0); /* the newcomer has no part in what was before it */
    if (e->state == INV_ENERGY_COUNTED && !e->first && read_counters(e, &before)) {
        e->busy_ns = rmd_machine_ran(e->root);
        e->looked_ns = inv_now_ns();
    }
    s->pid = pid;
    s->ran_ns = rmd_process_ran(pid);
    s->next = e->first;
    e->first = s;
}

void rmd_energy_leave(struct rmd_energy *e, struct rmd_energy_share *s, uint64_t told_ns)
{
    divide_since_last(e, s, told_ns);
    for (struct rmd_energy_share **link = &e->first; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            return;
        }
}
