/* SPDX-License-Identifier: GPL-3.0-or-later */
/* confine.c - see confine.h. */
#define _GNU_SOURCE
#include "rmd/users/confine.h"
#include "rmd/host/cgroup.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/domain/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATIONS = 16 };    /* ancestors that are searched for a member: bounds the time */
enum { BURST_NS = 20000000 }; /* processor time that checks may take at once, before they pause */

int rmd_enforcement_begin(struct rmd_enforcement *e, const struct inv_topology *cores,
                          enum rmd_enforce how, bool always, const char *base)
{
    e->how = how;
    e->required = always;
    if (inv_cpus_get(0, &e->possible))
        return -1;
    for (unsigned c = 0; c < cores->ncores && !cores->emulated; c++)
        inv_cpus_add(&e->possible, (size_t)cores->os_cpu[c]);
    if (e->required && e->how == RMD_ENFORCE_CPUSET) {
        e->cpusets = rmd_cgroup_open(*base == '/' ? base : NULL);
        if (!e->cpusets)
            rmd_log(RMD_WARNING, "enforcing by affinity, since there are no cpusets");
    }
    return 0;
}

const struct rmd_confinement *rmd_confinement_of(const struct rmd_enforcement *e, uid_t uid)
{
    const struct rmd_confinement *con = e->first;
    while (con && rmd_domain_uid(con->domain) != uid)
        con = con->next;
    return con;
}

static void list_confinement(struct rmd_confinement *con, const struct rmd_domain *d)
{
    con->active = true;
    con->domain = d;
    con->next = con->by->first;
    con->by->first = con;
}

static void unlist_confinement(struct rmd_confinement *con)
{
    struct rmd_confinement **link = &con->by->first;
    if (!con->active)
        return;
    while (*link != con)
        link = &(*link)->next;
    *link = con->next;
    con->active = false;
}

static bool is_enforced(const struct rmd_enforcement *e)
{
    return e->required && e->how != RMD_ENFORCE_NONE;
}

static bool domain_has_core(const struct rmd_domain *d, unsigned core)
{
    return rmd_domain_grant(d, core) == RMD_GRANTED;
}

/* The CPUs of the domain's cores; with `others` also CPUs that are no core of rmd. */
static struct inv_cpus cpus_of(const struct rmd_domain *d, const struct rmd_enforcement *e,
                               bool others)
{
    const struct inv_topology *cores = rmd_domain_topology(d);
    struct inv_cpus set;
    inv_cpus_clear(&set);
    if (others)
        set = e->possible;
    for (unsigned c = 0; c < cores->ncores; c++)
        if (domain_has_core(d, c))
            inv_cpus_add(&set, (size_t)cores->os_cpu[c]);
        else
            inv_cpus_remove(&set, (size_t)cores->os_cpu[c]);
    return set;
}

/* The CPUs that its processes could use until now.  After a takeover the affinity of a member
 * tells, since a former rmd has set it. */
static struct inv_cpus cpus_until_now(const struct rmd_domain *d, const struct rmd_confinement *con)
{
    struct inv_cpus set;
    struct rmd_member member;
    if (con->active)
        return con->allowed;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (rmd_domain_member(d, s, &member) && !inv_cpus_get(member.pid, &set)) {
            inv_cpus_and(&set, &set, &con->by->possible);
            return set;
        }
    return con->by->possible;
}

/* Adds the first CPU of `of` that is online.  False: none is. */
static bool add_online(struct inv_cpus *set, const struct rmd_enforcement *e,
                       const struct inv_cpus *of)
{
    for (size_t cpu = 0; cpu < INV_MAX_CPUS; cpu++)
        if (inv_cpus_has(of, cpu) && !inv_cpus_has(&e->offline, cpu)) {
            inv_cpus_add(set, cpu);
            return true;
        }
    return false;
}

/* A user whose members are all stopped has no cores: other users have them.  A descendant of a
 * member may still run.  It may use the CPUs that are no core of rmd, else one that the user
 * had. */
static struct inv_cpus cpus_without_cores(const struct rmd_domain *d,
                                          const struct rmd_confinement *con)
{
    struct inv_cpus set = cpus_of(d, con->by, true), had = cpus_until_now(d, con);
    if (!inv_cpus_count(&set) && !add_online(&set, con->by, &had))
        add_online(&set, con->by, &con->by->possible);
    return set;
}

static bool confine_process(const struct rmd_domain *d, const struct rmd_confinement *con,
                            const struct rmd_member *p, const struct inv_cpus *before)
{
    unsigned outside = rmd_affinity_confine(p->pid, p->pidfd, &con->allowed, before);
    if (outside)
        rmd_debug("user %u: %u threads of process %d moved to its cores",
                  (unsigned)rmd_domain_uid(d), outside, (int)p->pid);
    return outside > 0;
}

/* The kernel drops the affinity of threads when it changes their cpuset.  Threads that hold a core
 * must stay on it. */
static void pin_holders(const struct rmd_domain *d)
{
    const struct inv_topology *cores = rmd_domain_topology(d);
    const struct inv_table *table = rmd_domain_table(d);
    if (!table || table->mode != INV_MODE_PINNED)
        return;
    for (unsigned c = 0; c < cores->ncores; c++) {
        pid_t tid;
        int slot = domain_has_core(d, c) ? rmd_domain_holder(d, c, &tid) : -1;
        struct rmd_member p;
        if (slot >= 0 && rmd_domain_member(d, (unsigned)slot, &p))
            rmd_pin_thread(p.pid, p.pidfd, tid, cores->os_cpu[c]);
    }
}

/* The group of the nearest ancestor that is a member; NULL: there is none, or it is unknown. */
static const char *group_of_parent(const struct rmd_confinement *con, struct rmd_domain *d,
                                   pid_t pid)
{
    struct rmd_procstat stat;
    for (int i = 0; i < GENERATIONS && rmd_procstat(pid, &stat) && stat.parent > 1; i++) {
        int slot = rmd_domain_slot(d, pid = stat.parent);
        if (slot >= 0 && con->group[slot] && *con->group[slot])
            return con->group[slot];
    }
    return NULL;
}

/* The group of the process before it entered the user's cpuset.  The process is in the cpuset
 * already if a former rmd put it there, or if a member started it. */
static char *find_origin(struct rmd_domain *d, struct rmd_confinement *con, unsigned slot,
                         const struct rmd_member *p)
{
    char *now = rmd_cgroup_of(p->pid, rmd_domain_uid(d));
    const char *known = now;
    if (!known)
        known = rmd_state_saved_group(d, slot);
    if (!known)
        known = group_of_parent(con, d, p->pid);
    if (!known)
        known = con->origin ? con->origin : "";
    char *origin = strdup(known);
    free(now);
    return origin;
}

static bool enter_cpuset(struct rmd_domain *d, struct rmd_confinement *con, unsigned slot,
                         const struct rmd_member *p)
{
    char *origin = find_origin(d, con, slot, p);
    if (!origin)
        return false;
    rmd_state_set_group(d, slot, *origin ? origin : NULL);
    if (!rmd_cgroup_enter(rmd_domain_uid(d), p->pid, p->pidfd)) {
        int saved = errno;
        rmd_state_set_group(d, slot, NULL);
        free(origin);
        errno = saved;
        return false;
    }
    con->group[slot] = origin;
    char *copy = *origin ? strdup(origin) : NULL;
    if (copy) {
        free(con->origin);
        con->origin = copy;
    }
    return true;
}

static bool is_confined_by_affinity(const struct rmd_confinement *con, unsigned slot)
{
    return !con->by->cpusets || con->by_affinity[slot];
}

/* The process is in no cpuset, or its cpuset has other CPUs. */
static void confine_by_affinity(const struct rmd_domain *d, struct rmd_confinement *con,
                                unsigned slot, const struct rmd_member *p,
                                const struct inv_cpus *given)
{
    con->by_affinity[slot] = true;
    confine_process(d, con, p, given);
}

/* The cpuset confines the process from here on. */
static void rely_on_cpuset(struct rmd_confinement *con, unsigned slot, const struct rmd_member *p,
                           const struct inv_cpus *given)
{
    if (con->by_affinity[slot])
        rmd_affinity_release(p->pid, p->pidfd, &con->by->possible, given, &con->cpus);
    con->by_affinity[slot] = false;
}

static void set_cpuset(const struct rmd_domain *d, struct rmd_confinement *con)
{
    bool was_stale = con->cpuset_stale;
    con->cpus = rmd_domain_granted(d) ? cpus_of(d, con->by, false) : con->allowed;
    con->cpuset_stale = !rmd_cgroup_confine(rmd_domain_uid(d), &con->cpus);
    if (con->cpuset_stale && !was_stale)
        rmd_log(RMD_WARNING, "user %u: cannot change its cpuset: %s: enforcing by affinity",
                (unsigned)rmd_domain_uid(d), strerror(errno));
}

/* given: the CPUs until now of members that are confined by affinity instead. */
static void confine_by_cpuset(struct rmd_domain *d, struct rmd_confinement *con,
                              const struct inv_cpus *given)
{
    struct rmd_member p;
    set_cpuset(d, con);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        if (!rmd_domain_member(d, s, &p))
            continue;
        if (!con->cpuset_stale && (con->group[s] || enter_cpuset(d, con, s, &p))) {
            rely_on_cpuset(con, s, &p, given);
            continue;
        }
        if (!con->cpuset_stale && !con->by_affinity[s])
            rmd_log(RMD_WARNING,
                    "user %u: process %d cannot be put into its cpuset: %s: enforcing by affinity",
                    (unsigned)rmd_domain_uid(d), (int)p.pid, strerror(errno));
        confine_by_affinity(d, con, s, &p, given);
    }
    pin_holders(d);
}

bool rmd_confinement_update(struct rmd_domain *d, struct rmd_confinement *con)
{
    struct rmd_domain_counts n = rmd_domain_counts(d);
    struct rmd_member p;
    bool all_stopped = n.live && n.stopped == n.live;
    if (!is_enforced(con->by) || !(n.granted || con->active || all_stopped))
        return false; /* wait for its first core: no process can enter an empty cpuset */
    struct inv_cpus before = con->allowed;
    struct inv_cpus now = n.granted ? cpus_of(d, con->by, true) : cpus_without_cores(d, con);
    bool first = !con->active;
    if (!first && inv_cpus_equal(&before, &now))
        return false;
    con->allowed = now;
    con->before = first ? now : before;
    if (first)
        list_confinement(con, d);
    if (con->by->cpusets) {
        confine_by_cpuset(d, con, &con->before);
    } else {
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
            if (rmd_domain_member(d, s, &p))
                confine_process(d, con, &p, first ? NULL : &before);
    }
    rmd_domain_confined(d);
    return true;
}

void rmd_confinement_add_member(struct rmd_domain *d, struct rmd_confinement *con, unsigned slot)
{
    struct rmd_member p;
    if (!is_enforced(con->by) || !con->active)
        return; /* wait for its first core */
    if (con->by->cpusets)
        confine_by_cpuset(d, con, &con->allowed);
    /* where all CPUs are allowed each thread would be read for nothing */
    else if (!inv_cpus_equal(&con->allowed, &con->by->possible) && rmd_domain_member(d, slot, &p))
        confine_process(d, con, &p, NULL);
}

void rmd_confinement_check(struct rmd_domain *d, struct rmd_confinement *con)
{
    uint64_t now = inv_now_ns(), begun = rmd_rate_limit_clock();
    bool has_all = rmd_domain_granted(d) >= rmd_domain_topology(d)->ncores;
    struct rmd_member p;
    if (!con->active || has_all || con->due_ns > now)
        return;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (rmd_domain_member(d, s, &p) && is_confined_by_affinity(con, s) &&
            confine_process(d, con, &p, NULL))
            rmd_domain_confined(d);
    con->due_ns = rmd_rate_limit_add(con->due_ns, now, rmd_rate_limit_clock() - begun, BURST_NS);
}

/* Threads with exactly the affinity that rmd gave them may use all CPUs again. */
static void restore_affinity(const struct rmd_confinement *con, unsigned slot,
                             const struct rmd_member *p)
{
    if (con->active && is_enforced(con->by) && is_confined_by_affinity(con, slot) &&
        !inv_cpus_equal(&con->allowed, &con->by->possible))
        rmd_affinity_confine(p->pid, p->pidfd, &con->by->possible, &con->allowed);
}

/* Moves the process to its own former group, else to one that another process of the user had. */
static void restore_group(const struct rmd_domain *d, const struct rmd_confinement *con,
                          unsigned slot, const struct rmd_member *p)
{
    if (!rmd_cgroup_leave(p->pid, p->pidfd, con->group[slot]) &&
        !rmd_cgroup_leave(p->pid, p->pidfd, con->origin))
        rmd_log(RMD_INFO,
                "user %u: process %d stays in its user's group: cannot put it back into %s: %s",
                (unsigned)rmd_domain_uid(d), (int)p->pid,
                *con->group[slot] ? con->group[slot] : "an unknown one", strerror(errno));
}

void rmd_confinement_remove_member(struct rmd_domain *d, struct rmd_confinement *con, unsigned slot,
                                   bool lives)
{
    const char *noted = rmd_state_saved_group(d, slot);
    if (noted && !con->origin)
        con->origin = strdup(noted); /* it died while no rmd ran, and may have children */
    struct rmd_member p;
    if (lives && rmd_domain_member(d, slot, &p)) {
        if (con->group[slot])
            restore_group(d, con, slot, &p);
        restore_affinity(con, slot, &p);
    }
    free(con->group[slot]);
    con->group[slot] = NULL;
    con->by_affinity[slot] = false;
    rmd_state_set_group(d, slot, NULL);
}

void rmd_confinement_lift(struct rmd_domain *d, struct rmd_confinement *con)
{
    unlist_confinement(con);
    if (con->by->cpusets)
        rmd_cgroup_release(rmd_domain_uid(d), con->origin);
}

void rmd_confinement_free(struct rmd_confinement *con)
{
    unlist_confinement(con);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        free(con->group[s]);
    free(con->origin);
}

void rmd_enforcement_remove_leftovers(const struct rmd_enforcement *e)
{
    if (e->cpusets)
        rmd_cgroup_remove_leftovers();
}

bool rmd_enforcement_has_leftovers(const struct rmd_enforcement *e)
{
    return e->cpusets && rmd_cgroup_has_leftovers();
}
