/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nonmembers.c - a scan has two parts.  The first lists the processes of confined users and finds
 * the descendants of members.  A descendant stays one until it ends, even if its parents end
 * before.  The second part confines each process to its user's cores, or lifts its confinement.
 *
 * Pid and start time identify a process.  rmd acts on a process while it has a pidfd of it open.
 */
#define _GNU_SOURCE
#include "rmd/users/nonmembers.h"
#include "rmd/host/cgroup.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SLICE_NS = 2000000, /* the longest time that other events wait for a slice */
    BACKOFF_FACTOR = 9, /* pause after a slice, in durations of the slice: a tenth of a processor */
    PASSES = 16         /* one more for each generation whose parent has the larger pid */
};

struct rmd_user_process {
    pid_t pid, parent; /* the pid first: rmd_find_pid */
    uid_t uid;
    uint64_t start_ticks;
    bool member;    /* confine.c confines it */
    bool descended; /* from a member */
    bool confined;  /* by affinity, to `given` */
    struct inv_cpus given;
};

/* The process with this pid, or NULL. */
static struct rmd_user_process *find_process(const struct rmd_process_list *in, pid_t pid)
{
    return rmd_find_pid(pid, in->items, in->count, sizeof *in->items);
}

static struct rmd_user_process *find_same(const struct rmd_process_list *in,
                                          const struct rmd_user_process *p)
{
    struct rmd_user_process *was = find_process(in, p->pid);
    return was && was->start_ticks == p->start_ticks ? was : NULL;
}

/* --- the first part: reading /proc */

static void add_process(struct rmd_nonmembers *x, pid_t pid)
{
    struct rmd_procstat stat;
    uid_t uid;
    bool ours = pid > 0 && pid != getpid() && rmd_owner(pid, &uid) &&
                (rmd_confinement_of(x->enforcement, uid) || find_process(&x->known, pid));
    if (!ours || !rmd_procstat(pid, &stat) || stat.state == 'Z')
        return;
    struct rmd_process_list *found = &x->found;
    void *items = rmd_grow(found->items, found->count, &found->capacity, sizeof *found->items);
    if (!items)
        return; /* the scan leaves the process out; a confined one stays confined */
    found->items = items;
    /* /proc lists pids in ascending order, and find_process relies on that */
    if (found->count && found->items[found->count - 1].pid >= pid)
        return;
    found->items[found->count++] = (struct rmd_user_process){
        .pid = pid, .parent = stat.parent, .uid = uid, .start_ticks = stat.start_ticks};
}

/* --- members and their descendants */

static void mark_members(struct rmd_nonmembers *x)
{
    for (const struct rmd_confinement *con = x->enforcement->first; con; con = con->next)
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
            struct rmd_member member;
            bool is_used = rmd_domain_member(con->domain, s, &member);
            struct rmd_user_process *p = is_used ? find_process(&x->found, member.pid) : NULL;
            if (p && p->start_ticks == member.start_ticks)
                p->member = true;
        }
}

/* A member that has called exec counts as a descendant of itself. */
static void mark_replaced(struct rmd_nonmembers *x)
{
    for (const struct rmd_confinement *con = x->enforcement->first; con; con = con->next)
        for (unsigned i = 0; i < RMD_REPLACED; i++) {
            const struct rmd_replaced *r = &rmd_domain_replaced(con->domain)[i];
            struct rmd_user_process *p = r->pid ? find_process(&x->found, r->pid) : NULL;
            if (p && p->start_ticks == r->start_ticks && p->uid == rmd_domain_uid(con->domain))
                p->descended = true;
        }
}

static void copy_marks(struct rmd_nonmembers *x)
{
    for (unsigned i = 0; i < x->found.count; i++) {
        struct rmd_user_process *p = &x->found.items[i];
        const struct rmd_user_process *was = find_same(&x->known, p);
        if (!was)
            continue;
        p->descended = was->descended;
        p->confined = was->confined;
        p->given = was->given;
    }
}

/* A child that runs as another user than its parent is not a descendant: it has other rights. */
static void mark_descendants(struct rmd_nonmembers *x)
{
    bool changed = true;
    for (int pass = 0; changed && pass < PASSES; pass++) {
        changed = false;
        for (unsigned i = 0; i < x->found.count; i++) {
            struct rmd_user_process *p = &x->found.items[i];
            const struct rmd_user_process *parent =
                p->descended ? NULL : find_process(&x->found, p->parent);
            if (!parent || parent->uid != p->uid || !(parent->member || parent->descended))
                continue;
            p->descended = changed = true;
        }
    }
}

static void classify_processes(struct rmd_nonmembers *x)
{
    copy_marks(x);
    mark_members(x);
    mark_replaced(x);
    mark_descendants(x);
    struct rmd_process_list was = x->known;
    x->known = x->found;
    x->found = (struct rmd_process_list){.items = was.items, .capacity = was.capacity};
    x->next = 0;
}

/* --- the second part: confinement */

static bool is_same_process(const struct rmd_user_process *p)
{
    struct rmd_procstat now;
    uid_t uid;
    return rmd_procstat(p->pid, &now) && now.start_ticks == p->start_ticks &&
           rmd_owner(p->pid, &uid) && uid == p->uid;
}

/* For a process that was started before its parent entered the user's cpuset.  False: the cpuset
 * does not confine it. */
static bool enter_cpuset(const struct rmd_user_process *p, int pidfd)
{
    char *group = rmd_cgroup_of(p->pid, p->uid);
    bool is_in = !group || rmd_cgroup_enter(p->uid, p->pid, pidfd);
    if (!is_in)
        rmd_debug("user %u: process %d cannot be put into its cpuset", (unsigned)p->uid,
                  (int)p->pid);
    free(group);
    return is_in;
}

static void confine_process(const struct rmd_nonmembers *x, struct rmd_user_process *p, int pidfd,
                            const struct rmd_confinement *con)
{
    const struct inv_cpus *to = con ? &con->allowed : &x->enforcement->possible;
    /* a descendant found for the first time may have inherited the user's CPUs before the change */
    const struct inv_cpus *before = p->confined ? &p->given : p->descended ? &con->before : NULL;
    unsigned outside = rmd_affinity_confine(p->pid, pidfd, to, before);
    if (outside)
        rmd_debug("user %u: %u threads of process %d, which has not joined, moved to its cores",
                  (unsigned)p->uid, outside, (int)p->pid);
    p->confined = con != NULL;
    p->given = *to;
}

static bool confine_by_cpuset(const struct rmd_nonmembers *x, struct rmd_user_process *p, int pidfd,
                              const struct rmd_confinement *con)
{
    if (!con || !x->enforcement->cpusets || !p->descended || con->cpuset_stale ||
        !enter_cpuset(p, pidfd))
        return false;
    if (p->confined) /* by affinity, while it was in no cpuset */
        rmd_affinity_release(p->pid, pidfd, &x->enforcement->possible, &p->given, &con->cpus);
    p->confined = false;
    return true;
}

static void apply_confinement(const struct rmd_nonmembers *x, struct rmd_user_process *p)
{
    const struct rmd_confinement *con =
        x->ended ? NULL : rmd_confinement_of(x->enforcement, p->uid);
    if (con && (p->member || !(p->descended || con->whole_user)))
        con = NULL;
    p->confined &= !p->member;
    if (!con && !p->confined)
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (pidfd < 0)
        return;
    if (is_same_process(p) && !confine_by_cpuset(x, p, pidfd, con))
        confine_process(x, p, pidfd, con);
    close(pidfd);
}

/* --- a scan */

static void begin_scan(struct rmd_nonmembers *x)
{
    x->again = false;
    x->found.count = 0;
    x->processes = opendir("/proc");
    x->phase = x->processes ? RMD_SCAN_READ : RMD_SCAN_IDLE;
}

/* Handles one process, or ends a part of the scan. */
static void scan_step(struct rmd_nonmembers *x)
{
    struct dirent *e = x->phase == RMD_SCAN_READ ? readdir(x->processes) : NULL;
    if (e) {
        add_process(x, atoi(e->d_name));
    } else if (x->phase == RMD_SCAN_READ) {
        closedir(x->processes);
        classify_processes(x);
        x->phase = RMD_SCAN_CONFINE;
    } else if (x->next < x->known.count) {
        apply_confinement(x, &x->known.items[x->next++]);
    } else {
        x->phase = RMD_SCAN_IDLE;
        if (x->again)
            begin_scan(x);
    }
}

/* The next slice runs when the back-off ends. */
static void schedule_slice(const struct rmd_nonmembers *x)
{
    rmd_ring_at(&x->timer, x->backoff_until_ns ? x->backoff_until_ns : 1);
}

static void run_slice(struct rmd_nonmembers *x)
{
    uint64_t from = inv_now_ns(), now = from;
    while (x->phase != RMD_SCAN_IDLE && now - from < SLICE_NS) {
        scan_step(x);
        now = inv_now_ns();
    }
    x->backoff_until_ns = now + BACKOFF_FACTOR * (now - from);
    if (x->phase != RMD_SCAN_IDLE)
        schedule_slice(x);
}

static void slice_is_due(struct rmd_source *source, uint32_t events)
{
    struct rmd_nonmembers *x = (void *)((char *)source - offsetof(struct rmd_nonmembers, timer));
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    if (x->phase == RMD_SCAN_IDLE)
        begin_scan(x);
    run_slice(x);
}

int rmd_nonmembers_begin(struct rmd_nonmembers *x, const struct rmd_enforcement *enforcement)
{
    *x = (struct rmd_nonmembers){.enforcement = enforcement};
    return rmd_timer_open(&x->timer, slice_is_due);
}

/* Is a process confined, or has one been? */
static bool scan_is_needed(const struct rmd_nonmembers *x)
{
    for (const struct rmd_confinement *con = x->enforcement->first; con; con = con->next)
        if (!inv_cpus_equal(&con->allowed, &x->enforcement->possible))
            return true;
    for (unsigned i = 0; i < x->known.count; i++)
        if (x->known.items[i].confined &&
            !inv_cpus_equal(&x->known.items[i].given, &x->enforcement->possible))
            return true;
    return false;
}

void rmd_nonmembers_scan(struct rmd_nonmembers *x)
{
    if (x->phase == RMD_SCAN_IDLE && scan_is_needed(x))
        schedule_slice(x);
}

void rmd_nonmembers_changed(struct rmd_nonmembers *x)
{
    x->again = x->phase != RMD_SCAN_IDLE;
    rmd_nonmembers_scan(x);
}

void rmd_nonmembers_end(struct rmd_nonmembers *x)
{
    x->ended = true;
    for (unsigned i = 0; i < x->known.count; i++)
        apply_confinement(x, &x->known.items[i]);
    if (x->phase == RMD_SCAN_READ)
        closedir(x->processes);
    x->phase = RMD_SCAN_IDLE;
    free(x->known.items);
    free(x->found.items);
    x->known = x->found = (struct rmd_process_list){0};
    rmd_timer_close(&x->timer);
}
