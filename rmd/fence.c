/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fence.c - see fence.h. */
#define _GNU_SOURCE
#include "fence.h"
#include "cgroup.h"
#include "core.h"
#include "enforce.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum rmd_enforce how;
static cpu_set_t possible; /* CPUs that there are for us */
static bool cpusets;
static bool hold; /* also our own user: cores have been drained, or limited */

int rmd_fences_begin(enum rmd_enforce enforce, bool always, const char *base)
{
    how = enforce;
    hold = always;
    if (sched_getaffinity(0, sizeof possible, &possible))
        return -1;
    if (hold && how == RMD_ENFORCE_CPUSET) {
        cpusets = rmd_cgroup_open(*base == '/' ? base : NULL);
        if (!cpusets)
            rmd_log(RMD_WARNING, "enforcing by affinity, since there are no cpusets");
    }
    return 0;
}

void rmd_fences_hold(void) { hold = true; }

static bool holds(void) { return hold && how != RMD_ENFORCE_NONE; }

static bool mine(const struct rmd_domain *d, unsigned core)
{
    return d->presence[core] == RMD_HERE;
}

/* The CPUs of its cores; with `others` also those that are none of rmd's. */
static cpu_set_t cpus_of(const struct rmd_domain *d, bool others)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (others)
        set = possible;
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (mine(d, c))
            CPU_SET((size_t)d->topology.os_cpu[c], &set);
        else
            CPU_CLR((size_t)d->topology.os_cpu[c], &set);
    return set;
}

static bool confine_process(const struct rmd_domain *d, const struct rmd_fence *f,
                            struct rmd_process *p, const cpu_set_t *before)
{
    unsigned outside = rmd_confine(p->pid, p->pidfd.fd, &f->allowed, before);
    if (outside)
        rmd_chat("user %u: %u threads of process %d moved to its cores", (unsigned)d->uid, outside,
                 (int)p->pid);
    return outside > 0;
}

/* A kernel that changes a cpuset forgets whom we had pinned; who computes on a core shall stay. */
static void pin_holders(struct rmd_domain *d)
{
    if (!d->table || d->table->mode != INV_MODE_PINNED)
        return;
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        struct inv_core *core = inv_core_at(d->table, c);
        /* relaxed: a hint, checked before use */
        unsigned name = inv_word_holder(atomic_load_explicit(&core->word, memory_order_relaxed));
        if (!mine(d, c) || name == INV_NOBODY || name > INV_MAX_SLOTS || !d->procs[name - 1].used)
            continue;
        struct rmd_process *p = &d->procs[name - 1];
        rmd_pin_thread(p->pid, p->pidfd.fd,
                       atomic_load_explicit(&core->holder_tid, memory_order_relaxed),
                       d->topology.os_cpu[c]);
    }
}

/* The user has a core: an empty cpuset takes nobody. */
static void confine_by_cpuset(struct rmd_domain *d, struct rmd_fence *f)
{
    cpu_set_t cpus = cpus_of(d, false);
    if (!rmd_cgroup_confine(d->uid, &cpus)) {
        rmd_log(RMD_WARNING, "user %u: cannot change its cpuset: %s", (unsigned)d->uid,
                strerror(errno));
        return;
    }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_process *p = &d->procs[s];
        if (!p->used || f->group[s] || (f->group[s] = rmd_cgroup_enter(d->uid, p->pid)) != NULL)
            continue;
        rmd_log(RMD_WARNING, "user %u: process %d cannot be put into its cpuset: %s",
                (unsigned)d->uid, (int)p->pid, strerror(errno));
    }
    pin_holders(d);
}

void rmd_fence_move(struct rmd_domain *d, struct rmd_fence *f)
{
    if (!holds() || !d->here)
        return;
    cpu_set_t before = f->allowed, now = cpus_of(d, true);
    bool first = !f->stands;
    if (!first && CPU_EQUAL(&before, &now))
        return;
    f->allowed = now;
    f->stands = true;
    if (cpusets) {
        confine_by_cpuset(d, f);
    } else {
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
            if (d->procs[s].used)
                confine_process(d, f, &d->procs[s], first ? NULL : &before);
    }
    rmd_domain_confined(d);
}

void rmd_fence_newcomer(struct rmd_domain *d, struct rmd_fence *f, unsigned slot)
{
    if (!holds() || !f->stands)
        return; /* else when its first core is here */
    if (cpusets)
        confine_by_cpuset(d, f);
    else if (!CPU_EQUAL(&f->allowed, &possible)) /* a look at each thread, for one's own machine */
        confine_process(d, f, &d->procs[slot], NULL);
}

void rmd_fence_check(struct rmd_domain *d, struct rmd_fence *f)
{
    if (!f->stands || cpusets || d->here >= d->topology.ncores)
        return;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && confine_process(d, f, &d->procs[s], NULL))
            rmd_domain_confined(d);
}

void rmd_fence_let_go(struct rmd_domain *d, struct rmd_fence *f, unsigned slot, bool lives)
{
    if (f->group[slot] && lives)
        rmd_cgroup_leave(d->procs[slot].pid, f->group[slot]);
    free(f->group[slot]);
    f->group[slot] = NULL;
}

void rmd_fence_open_up(struct rmd_domain *d, struct rmd_fence *f)
{
    f->stands = false;
    if (cpusets)
        rmd_cgroup_release(d->uid);
}

void rmd_fence_free(struct rmd_fence *f)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        free(f->group[s]);
}
