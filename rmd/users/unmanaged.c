/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unmanaged.c - see unmanaged.h. */
#define _GNU_SOURCE
#include "rmd/users/unmanaged.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLICE_NS = 1000000,    /* the longest time that other events wait for a slice */
    SLICE_PAUSE_NS = 4000000,
    COST_PART = 100,       /* a scan takes at most this part of the time until the next one */
    FOREIGN_PART = 10,     /* no scan if all but members have used less than this part of one core */
};

static uint64_t ns_of_ticks(uint64_t ticks)
{
    return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static struct rmd_unmanaged_process *find_process(const struct rmd_unmanaged_list *in, pid_t pid)
{
    return rmd_find_pid(pid, in->items, in->count, sizeof *in->items);
}

/* --- is there anything to find? */

static void add_members(struct rmd_domain *d, void *context)
{
    uint64_t *sum = context;
    struct rmd_member member;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (rmd_domain_member(d, s, &member))
            *sum += rmd_process_ran(member.pid);
}

/* Have processes that are no members computed since the last look?  A member that has ended meanwhile
 * has run, too: then there is a scan for nothing. */
static bool others_computed(struct rmd_unmanaged *x, uint64_t now)
{
    uint64_t busy = rmd_machine_ran(""), members = 0;
    x->domains.each(add_members, &members);
    uint64_t elapsed = now - x->looked_ns, all = busy - x->busy_ns;
    uint64_t own = members > x->members_ns ? members - x->members_ns : 0;
    bool first = !x->looked_ns;
    x->looked_ns = now;
    x->busy_ns = busy;
    x->members_ns = members;
    return !first && all > own + elapsed / FOREIGN_PART;
}

/* --- a scan */

static bool is_user_served(const struct rmd_unmanaged *x, uid_t uid)
{
    const struct rmd_domain *d = x->domains.of(uid);
    return d && rmd_domain_live(d);
}

static bool runs_on(pid_t pid, const struct inv_cpus *cpus)
{
    struct inv_cpus allowed;
    if (inv_cpus_get(pid, &allowed))
        return false;
    inv_cpus_and(&allowed, &allowed, cpus);
    return inv_cpus_count(&allowed) > 0;
}

static void add_process(struct rmd_unmanaged *x, pid_t pid)
{
    struct rmd_procstat stat;
    uid_t uid;
    struct rmd_unmanaged_list *list = &x->found;
    if (pid <= 0 || pid == getpid() || !rmd_owner(pid, &uid) || !is_user_served(x, uid) ||
        !rmd_procstat(pid, &stat) || stat.state == 'Z')
        return;
    void *items = rmd_grow(list->items, list->count, &list->capacity, sizeof *list->items);
    if (!items)
        return; /* the process is not shown */
    list->items = items;
    /* /proc lists pids in ascending order, and find_process relies on that */
    if (list->count && list->items[list->count - 1].pid >= pid)
        return;
    list->items[list->count++] = (struct rmd_unmanaged_process){.pid = pid,
                                                                .uid = uid,
                                                                .start_ticks = stat.start_ticks,
                                                                .ran_ticks = stat.ran_ticks,
                                                                .seen_ns = inv_now_ns()};
}

static void mark_members(struct rmd_domain *d, void *context)
{
    struct rmd_unmanaged *x = context;
    struct rmd_member member;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        bool used = rmd_domain_member(d, s, &member);
        struct rmd_unmanaged_process *p = used ? find_process(&x->found, member.pid) : NULL;
        if (p && p->start_ticks == member.start_ticks)
            p->member = true;
    }
}

/* Sets the cores that the process has used since the scan before. */
static void judge_process(const struct rmd_unmanaged *x, struct rmd_unmanaged_process *p)
{
    const struct rmd_unmanaged_process *was = find_process(&x->known, p->pid);
    if (p->member || !was || was->start_ticks != p->start_ticks || p->seen_ns <= was->seen_ns ||
        p->ran_ticks < was->ran_ticks)
        return;
    p->cores = (double)ns_of_ticks(p->ran_ticks - was->ran_ticks) / (double)(p->seen_ns - was->seen_ns);
    if (!rmd_unmanaged_counts(p))
        return;
    if (!runs_on(p->pid, &x->cpus)) {
        p->cores = 0;
        return;
    }
    p->running = rmd_threads_running(p->pid);
    rmd_process_name(p->pid, p->program, sizeof p->program);
}

static void end_scan(struct rmd_unmanaged *x)
{
    closedir(x->processes);
    x->processes = NULL;
    x->domains.each(mark_members, x);
    for (unsigned i = 0; i < x->found.count; i++)
        judge_process(x, &x->found.items[i]);
    struct rmd_unmanaged_list was = x->known;
    x->known = x->found;
    x->found = (struct rmd_unmanaged_list){.items = was.items, .capacity = was.capacity};
}

static void run_slice(struct rmd_unmanaged *x)
{
    uint64_t from = inv_now_ns(), now = from;
    while (x->processes && now - from < SLICE_NS) {
        const struct dirent *e = readdir(x->processes);
        if (e)
            add_process(x, atoi(e->d_name));
        else
            end_scan(x);
        now = inv_now_ns();
    }
    x->took_ns += now - from;
    x->not_before_ns = now + COST_PART * x->took_ns;
    if (x->processes)
        rmd_ring_at(&x->timer, now + SLICE_PAUSE_NS);
}

static void slice_is_due(struct rmd_source *source, uint32_t events)
{
    struct rmd_unmanaged *x = (void *)((char *)source - offsetof(struct rmd_unmanaged, timer));
    (void)events;
    if (rmd_timer_rang(source) && x->processes)
        run_slice(x);
}

int rmd_unmanaged_begin(struct rmd_unmanaged *x, const struct inv_cpus *cpus,
                        const struct rmd_unmanaged_domains *domains)
{
    x->domains = *domains;
    x->cpus = *cpus;
    return rmd_timer_open(&x->timer, slice_is_due);
}

void rmd_unmanaged_sample(struct rmd_unmanaged *x)
{
    uint64_t now = inv_now_ns();
    if (x->processes || now < x->not_before_ns || !inv_cpus_count(&x->cpus))
        return;
    if (!others_computed(x, now)) {
        x->known.count = 0;
        return;
    }
    x->processes = opendir("/proc");
    x->took_ns = 0;
    if (x->processes)
        run_slice(x);
}

void rmd_unmanaged_forget(struct rmd_unmanaged *x)
{
    if (x->processes)
        closedir(x->processes);
    free(x->known.items);
    free(x->found.items);
    x->processes = NULL;
    x->known = x->found = (struct rmd_unmanaged_list){0};
    x->looked_ns = 0;
}
