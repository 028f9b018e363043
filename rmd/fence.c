/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fence.c - see fence.h. */
#define _GNU_SOURCE
#include "fence.h"
#include "account.h"
#include "cgroup.h"
#include "core.h"
#include "enforce.h"
#include "log.h"
#include "now.h"
#include "procstat.h"
#include "state.h"
#include "unjoined.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATIONS = 16 }; /* of parents that are looked at for a member */
enum { BURST_NS = 20000000 };

static enum rmd_enforce how;
static struct inv_cpus possible; /* CPUs that there are for us */
static struct inv_cpus offline;  /* now */
static bool cpusets;
static bool hold; /* also our own user: cores have been drained, or limited */
static struct rmd_fence *fences; /* that stand */

int rmd_fences_begin(const struct inv_topology *cores, enum rmd_enforce enforce, bool always,
                     const char *base)
{
    how = enforce;
    hold = always;
    if (inv_cpus_get(0, &possible))
        return -1;
    for (unsigned c = 0; c < cores->ncores && !cores->emulated; c++)
        inv_cpus_add(&possible, (size_t)cores->os_cpu[c]);
    if (hold && how == RMD_ENFORCE_CPUSET) {
        cpusets = rmd_cgroup_open(*base == '/' ? base : NULL);
        if (!cpusets)
            rmd_log(RMD_WARNING, "enforcing by affinity, since there are no cpusets");
    }
    return rmd_unjoined_begin(&possible, cpusets);
}

void rmd_fences_hold(void) { hold = true; }

void rmd_fences_offline(const struct inv_cpus *cpus) { offline = *cpus; }

const struct rmd_fence *rmd_fences(void) { return fences; }

const struct rmd_fence *rmd_fence_of(uid_t uid)
{
    const struct rmd_fence *f = fences;
    while (f && f->domain->uid != uid)
        f = f->next;
    return f;
}

static void put_up(struct rmd_fence *f, const struct rmd_domain *d)
{
    f->stands = true;
    f->domain = d;
    f->next = fences;
    fences = f;
}

static void take_down(struct rmd_fence *f)
{
    struct rmd_fence **link = &fences;
    if (!f->stands)
        return;
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    f->stands = false;
}

static bool holds(void) { return hold && how != RMD_ENFORCE_NONE; }

static bool mine(const struct rmd_domain *d, unsigned core)
{
    return d->presence[core] == RMD_HERE;
}

/* The CPUs of its cores; with `others` also those that are none of rmd's. */
static struct inv_cpus cpus_of(const struct rmd_domain *d, bool others)
{
    struct inv_cpus set;
    inv_cpus_clear(&set);
    if (others)
        set = possible;
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (mine(d, c))
            inv_cpus_add(&set, (size_t)d->topology.os_cpu[c]);
        else
            inv_cpus_remove(&set, (size_t)d->topology.os_cpu[c]);
    return set;
}

/* What its processes could use until now.  A former rmd has said it to their threads. */
static struct inv_cpus cpus_until_now(const struct rmd_domain *d, const struct rmd_fence *f)
{
    struct inv_cpus set;
    if (f->stands)
        return f->allowed;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && !inv_cpus_get(d->procs[s].pid, &set)) {
            inv_cpus_and(&set, &set, &possible);
            return set;
        }
    return possible;
}

/* Adds the first CPU of these that is online.  False: none is. */
static bool add_first(struct inv_cpus *set, const struct inv_cpus *of)
{
    for (size_t cpu = 0; cpu < INV_MAX_CPUS; cpu++)
        if (inv_cpus_has(of, cpu) && !inv_cpus_has(&offline, cpu)) {
            inv_cpus_add(set, cpu);
            return true;
        }
    return false;
}

/* Without a core, since all its members are stopped, a user keeps the CPUs that are none of rmd's,
 * or one of those that it had: its cores are others' now, and a descendant of a member may go on. */
static struct inv_cpus cpus_without_cores(const struct rmd_domain *d, const struct rmd_fence *f)
{
    struct inv_cpus set = cpus_of(d, true), had = cpus_until_now(d, f);
    if (!inv_cpus_count(&set) && !add_first(&set, &had))
        add_first(&set, &possible);
    return set;
}

static bool confine_process(const struct rmd_domain *d, const struct rmd_fence *f,
                            struct rmd_process *p, const struct inv_cpus *before)
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

/* Of the nearest member that the process comes from; NULL: none, or unknown. */
static const char *group_of_parent(const struct rmd_fence *f, struct rmd_domain *d, pid_t pid)
{
    struct rmd_procstat stat;
    for (int i = 0; i < GENERATIONS && rmd_procstat(pid, &stat) && stat.parent > 1; i++) {
        int slot = rmd_domain_slot(d, pid = stat.parent);
        if (slot >= 0 && f->group[slot] && *f->group[slot])
            return f->group[slot];
    }
    return NULL;
}

/* Where the process was before it came into the user's cpuset.  It is in there already when a former
 * rmd has put it there, or when a member has started it. */
static char *find_origin(struct rmd_domain *d, struct rmd_fence *f, unsigned slot)
{
    char *now = rmd_cgroup_of(d->procs[slot].pid, d->uid);
    const char *known = now;
    if (!known)
        known = rmd_state_noted_group(d, slot);
    if (!known)
        known = group_of_parent(f, d, d->procs[slot].pid);
    if (!known)
        known = f->home ? f->home : "";
    char *origin = strdup(known);
    free(now);
    return origin;
}

static bool enter(struct rmd_domain *d, struct rmd_fence *f, unsigned slot)
{
    char *origin = find_origin(d, f, slot);
    if (!origin)
        return false;
    rmd_state_note_group(d, slot, *origin ? origin : NULL);
    if (!rmd_cgroup_enter(d->uid, d->procs[slot].pid, d->procs[slot].pidfd.fd)) {
        int saved = errno;
        rmd_state_note_group(d, slot, NULL);
        free(origin);
        errno = saved;
        return false;
    }
    f->group[slot] = origin;
    char *home = *origin ? strdup(origin) : NULL;
    if (home) {
        free(f->home);
        f->home = home;
    }
    return true;
}

static bool kept_by_affinity(const struct rmd_fence *f, unsigned slot)
{
    return !cpusets || f->by_affinity[slot];
}

/* No cpuset keeps the process, or not to these cores. */
static void fall_back(struct rmd_domain *d, struct rmd_fence *f, unsigned slot,
                      const struct inv_cpus *given)
{
    f->by_affinity[slot] = true;
    confine_process(d, f, &d->procs[slot], given);
}

/* A cpuset keeps it again, or at last. */
static void rely_on_cpuset(struct rmd_domain *d, struct rmd_fence *f, unsigned slot,
                           const struct inv_cpus *given)
{
    if (f->by_affinity[slot])
        rmd_release(d->procs[slot].pid, d->procs[slot].pidfd.fd, &possible, given, &f->cpus);
    f->by_affinity[slot] = false;
}

static void set_cpuset(struct rmd_domain *d, struct rmd_fence *f)
{
    bool was_loose = f->loose;
    f->cpus = d->here ? cpus_of(d, false) : f->allowed;
    f->loose = !rmd_cgroup_confine(d->uid, &f->cpus);
    if (f->loose && !was_loose)
        rmd_log(RMD_WARNING, "user %u: cannot change its cpuset: %s: enforcing by affinity",
                (unsigned)d->uid, strerror(errno));
}

/* Whom affinity keeps instead may use what was `given` until now. */
static void confine_by_cpuset(struct rmd_domain *d, struct rmd_fence *f,
                              const struct inv_cpus *given)
{
    set_cpuset(d, f);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_process *p = &d->procs[s];
        if (!p->used)
            continue;
        if (!f->loose && (f->group[s] || enter(d, f, s))) {
            rely_on_cpuset(d, f, s, given);
            continue;
        }
        if (!f->loose && !f->by_affinity[s])
            rmd_log(RMD_WARNING,
                    "user %u: process %d cannot be put into its cpuset: %s: enforcing by affinity",
                    (unsigned)d->uid, (int)p->pid, strerror(errno));
        fall_back(d, f, s, given);
    }
    pin_holders(d);
}

void rmd_fence_move(struct rmd_domain *d, struct rmd_fence *f)
{
    bool all_stopped = d->live && d->stopped == d->live;
    if (!holds() || !(d->here || f->stands || all_stopped))
        return; /* else when its first core is here: an empty cpuset takes nobody */
    struct inv_cpus before = f->allowed;
    struct inv_cpus now = d->here ? cpus_of(d, true) : cpus_without_cores(d, f);
    bool first = !f->stands;
    if (!first && inv_cpus_equal(&before, &now))
        return;
    f->allowed = now;
    f->before = first ? now : before;
    if (first)
        put_up(f, d);
    if (cpusets) {
        confine_by_cpuset(d, f, &f->before);
    } else {
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
            if (d->procs[s].used)
                confine_process(d, f, &d->procs[s], first ? NULL : &before);
    }
    rmd_unjoined_changed();
    rmd_domain_confined(d);
}

void rmd_fence_newcomer(struct rmd_domain *d, struct rmd_fence *f, unsigned slot)
{
    if (!holds() || !f->stands)
        return; /* else when its first core is here */
    if (cpusets)
        confine_by_cpuset(d, f, &f->allowed);
    else if (!inv_cpus_equal(&f->allowed, &possible)) /* a look at each thread, for one's own machine */
        confine_process(d, f, &d->procs[slot], NULL);
}

void rmd_fence_check(struct rmd_domain *d, struct rmd_fence *f)
{
    uint64_t now = inv_now_ns(), begun = rmd_account_clock();
    if (!f->stands || d->here >= d->topology.ncores || f->due_ns > now)
        return;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && kept_by_affinity(f, s) &&
            confine_process(d, f, &d->procs[s], NULL))
            rmd_domain_confined(d);
    f->due_ns = rmd_account_after(f->due_ns, now, rmd_account_clock() - begun, BURST_NS);
}

/* What its threads were cut down to, and not further by themselves, is all again. */
static void widen(const struct rmd_fence *f, const struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    if (f->stands && holds() && kept_by_affinity(f, slot) && !inv_cpus_equal(&f->allowed, &possible))
        rmd_confine(p->pid, p->pidfd.fd, &possible, &f->allowed);
}

/* To where it was, or to where another one of the user was; never to where none has been. */
static void put_back(const struct rmd_domain *d, const struct rmd_fence *f, unsigned slot)
{
    pid_t pid = d->procs[slot].pid;
    int pidfd = d->procs[slot].pidfd.fd;
    if (!rmd_cgroup_leave(pid, pidfd, f->group[slot]) && !rmd_cgroup_leave(pid, pidfd, f->home))
        rmd_log(RMD_INFO,
                "user %u: process %d stays in its user's group: cannot put it back into %s: %s",
                (unsigned)d->uid, (int)pid, *f->group[slot] ? f->group[slot] : "an unknown one",
                strerror(errno));
}

void rmd_fence_let_go(struct rmd_domain *d, struct rmd_fence *f, unsigned slot, bool lives)
{
    const char *noted = rmd_state_noted_group(d, slot);
    if (noted && !f->home)
        f->home = strdup(noted); /* it has died while there was no rmd; it may have left children */
    if (f->group[slot] && lives)
        put_back(d, f, slot);
    if (lives)
        widen(f, d, slot);
    free(f->group[slot]);
    f->group[slot] = NULL;
    f->by_affinity[slot] = false;
    rmd_state_note_group(d, slot, NULL);
}

void rmd_fence_open_up(struct rmd_domain *d, struct rmd_fence *f)
{
    if (f->stands)
        rmd_unjoined_changed();
    take_down(f);
    if (cpusets)
        rmd_cgroup_release(d->uid, f->home);
}

void rmd_fence_free(struct rmd_fence *f)
{
    take_down(f);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        free(f->group[s]);
    free(f->home);
}

void rmd_fences_check(void)
{
    rmd_unjoined_look();
    if (cpusets)
        rmd_cgroup_tidy();
}

void rmd_fences_end(void) { rmd_unjoined_end(); }

bool rmd_fences_untidy(void) { return cpusets && rmd_cgroup_untidy(); }
