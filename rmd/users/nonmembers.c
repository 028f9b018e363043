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
#include "rmd/users/confine.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "now.h"
#include "rmd/host/procstat.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    SLICE_NS = 2000000, /* the longest time that other events wait for a slice */
    BACKOFF_FACTOR = 9, /* pause after a slice, in durations of the slice: a tenth of a processor */
    PASSES = 16         /* one more for each generation whose parent has the larger pid */
};

struct user_process {
    pid_t pid, parent;
    uid_t uid;
    uint64_t start_ticks;
    bool member;    /* confine.c confines it */
    bool descended; /* from a member */
    bool confined;  /* by affinity, to `given` */
    struct inv_cpus given;
};

/* Sorted by pid. */
struct process_list {
    struct user_process *items;
    unsigned count, capacity;
};

static struct process_list known, found; /* by the last scan; so far by the one under way */
static enum { SCAN_IDLE, SCAN_READ, SCAN_CONFINE } phase;
static DIR *processes;
static unsigned next;     /* index in `known` of the next process to confine */
static bool again, ended; /* scan once more; confine no process any more */
static struct inv_cpus possible;
static bool cpusets;
static struct rmd_source timer = {.fd = -1};
static uint64_t backoff_until_ns;

/* The process with this pid, or NULL. */
static struct user_process *find_process(const struct process_list *in, pid_t pid)
{
    unsigned from = 0, to = in->count;
    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        if (in->items[middle].pid < pid)
            from = middle + 1;
        else
            to = middle;
    }
    return from < in->count && in->items[from].pid == pid ? &in->items[from] : NULL;
}

static struct user_process *find_same(const struct process_list *in, const struct user_process *p)
{
    struct user_process *was = find_process(in, p->pid);
    return was && was->start_ticks == p->start_ticks ? was : NULL;
}

/* --- the first part: reading /proc */

static bool reserve_entry(void)
{
    unsigned capacity = found.capacity ? 2 * found.capacity : 256;
    if (found.count < found.capacity)
        return true;
    struct user_process *items = realloc(found.items, capacity * sizeof *items);
    if (!items)
        return false; /* the scan leaves the process out; a confined one stays confined */
    found.items = items;
    found.capacity = capacity;
    return true;
}

static void note_process(pid_t pid)
{
    struct rmd_procstat stat;
    uid_t uid;
    bool ours = pid > 0 && pid != getpid() && rmd_owner(pid, &uid) &&
                (rmd_confinement_of(uid) || find_process(&known, pid));
    if (!ours || !rmd_procstat(pid, &stat) || stat.state == 'Z' || !reserve_entry())
        return;
    /* /proc lists pids in ascending order, and find_process relies on that */
    if (found.count && found.items[found.count - 1].pid >= pid)
        return;
    found.items[found.count++] = (struct user_process){
        .pid = pid, .parent = stat.parent, .uid = uid, .start_ticks = stat.start_ticks};
}

/* --- members and their descendants */

static void mark_members(void)
{
    for (const struct rmd_confinement *con = rmd_confinements(); con; con = con->next)
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
            struct rmd_member member;
            bool is_used = rmd_domain_member(con->domain, s, &member);
            struct user_process *p = is_used ? find_process(&found, member.pid) : NULL;
            if (p && p->start_ticks == member.start_ticks)
                p->member = true;
        }
}

/* A member that has called exec counts as a descendant of itself. */
static void mark_replaced(void)
{
    for (const struct rmd_confinement *con = rmd_confinements(); con; con = con->next)
        for (unsigned i = 0; i < RMD_REPLACED; i++) {
            const struct rmd_replaced *r = &rmd_domain_replaced(con->domain)[i];
            struct user_process *p = r->pid ? find_process(&found, r->pid) : NULL;
            if (p && p->start_ticks == r->start_ticks && p->uid == rmd_domain_uid(con->domain))
                p->descended = true;
        }
}

static void copy_marks(void)
{
    for (unsigned i = 0; i < found.count; i++) {
        struct user_process *p = &found.items[i];
        const struct user_process *was = find_same(&known, p);
        if (!was)
            continue;
        p->descended = was->descended;
        p->confined = was->confined;
        p->given = was->given;
    }
}

/* A child that runs as another user than its parent is not a descendant: it has other rights. */
static void mark_descendants(void)
{
    bool changed = true;
    for (int pass = 0; changed && pass < PASSES; pass++) {
        changed = false;
        for (unsigned i = 0; i < found.count; i++) {
            struct user_process *p = &found.items[i];
            const struct user_process *parent =
                p->descended ? NULL : find_process(&found, p->parent);
            if (!parent || parent->uid != p->uid || !(parent->member || parent->descended))
                continue;
            p->descended = changed = true;
        }
    }
}

static void classify_processes(void)
{
    copy_marks();
    mark_members();
    mark_replaced();
    mark_descendants();
    struct process_list was = known;
    known = found;
    found = (struct process_list){.items = was.items, .capacity = was.capacity};
    next = 0;
}

/* --- the second part: confinement */

static bool is_same_process(const struct user_process *p)
{
    struct rmd_procstat now;
    uid_t uid;
    return rmd_procstat(p->pid, &now) && now.start_ticks == p->start_ticks &&
           rmd_owner(p->pid, &uid) && uid == p->uid;
}

/* For a process that was started before its parent entered the user's cpuset.  False: the cpuset
 * does not confine it. */
static bool put_into_cpuset(const struct user_process *p, int pidfd)
{
    char *group = rmd_cgroup_of(p->pid, p->uid);
    bool is_in = !group || rmd_cgroup_enter(p->uid, p->pid, pidfd);
    if (!is_in)
        rmd_debug("user %u: process %d cannot be put into its cpuset", (unsigned)p->uid,
                  (int)p->pid);
    free(group);
    return is_in;
}

static void confine_process(struct user_process *p, int pidfd, const struct rmd_confinement *con)
{
    const struct inv_cpus *to = con ? &con->allowed : &possible;
    /* a descendant found for the first time may have inherited the user's CPUs before the change */
    const struct inv_cpus *before = p->confined ? &p->given : p->descended ? &con->before : NULL;
    unsigned outside = rmd_affinity_confine(p->pid, pidfd, to, before);
    if (outside)
        rmd_debug("user %u: %u threads of process %d, which has not joined, moved to its cores",
                  (unsigned)p->uid, outside, (int)p->pid);
    p->confined = con != NULL;
    p->given = *to;
}

static bool confine_by_cpuset(struct user_process *p, int pidfd, const struct rmd_confinement *con)
{
    if (!con || !cpusets || !p->descended || con->cpuset_stale || !put_into_cpuset(p, pidfd))
        return false;
    if (p->confined) /* by affinity, while it was in no cpuset */
        rmd_affinity_release(p->pid, pidfd, &possible, &p->given, &con->cpus);
    p->confined = false;
    return true;
}

static void apply_confinement(struct user_process *p)
{
    const struct rmd_confinement *con = ended ? NULL : rmd_confinement_of(p->uid);
    if (con && (p->member || !(p->descended || con->whole_user)))
        con = NULL;
    p->confined &= !p->member;
    if (!con && !p->confined)
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (pidfd < 0)
        return;
    if (is_same_process(p) && !confine_by_cpuset(p, pidfd, con))
        confine_process(p, pidfd, con);
    close(pidfd);
}

/* --- a scan */

static void begin_scan(void)
{
    again = false;
    found.count = 0;
    processes = opendir("/proc");
    phase = processes ? SCAN_READ : SCAN_IDLE;
}

/* Handles one process, or ends a part of the scan. */
static void scan_step(void)
{
    struct dirent *e = phase == SCAN_READ ? readdir(processes) : NULL;
    if (e) {
        note_process(atoi(e->d_name));
    } else if (phase == SCAN_READ) {
        closedir(processes);
        classify_processes();
        phase = SCAN_CONFINE;
    } else if (next < known.count) {
        apply_confinement(&known.items[next++]);
    } else {
        phase = SCAN_IDLE;
        if (again)
            begin_scan();
    }
}

/* The next slice runs when the back-off ends. */
static void schedule_slice(void) { rmd_ring_at(&timer, backoff_until_ns ? backoff_until_ns : 1); }

static void run_slice(void)
{
    uint64_t from = inv_now_ns(), now = from;
    while (phase != SCAN_IDLE && now - from < SLICE_NS) {
        scan_step();
        now = inv_now_ns();
    }
    backoff_until_ns = now + BACKOFF_FACTOR * (now - from);
    if (phase != SCAN_IDLE)
        schedule_slice();
}

static void slice_is_due(struct rmd_source *source, uint32_t events)
{
    uint64_t expirations;
    (void)events;
    if (read(source->fd, &expirations, sizeof expirations) != sizeof expirations)
        return;
    if (phase == SCAN_IDLE)
        begin_scan();
    run_slice();
}

int rmd_nonmembers_begin(const struct inv_cpus *all, bool by_cpuset)
{
    possible = *all;
    cpusets = by_cpuset;
    timer = (struct rmd_source){timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                                slice_is_due};
    return timer.fd < 0 ? -1 : rmd_watch(&timer, EPOLLIN);
}

/* Is a process confined, or has one been? */
static bool scan_is_needed(void)
{
    for (const struct rmd_confinement *con = rmd_confinements(); con; con = con->next)
        if (!inv_cpus_equal(&con->allowed, &possible))
            return true;
    for (unsigned i = 0; i < known.count; i++)
        if (known.items[i].confined && !inv_cpus_equal(&known.items[i].given, &possible))
            return true;
    return false;
}

void rmd_nonmembers_scan(void)
{
    if (phase == SCAN_IDLE && scan_is_needed())
        schedule_slice();
}

void rmd_nonmembers_changed(void)
{
    again = phase != SCAN_IDLE;
    rmd_nonmembers_scan();
}

void rmd_nonmembers_end(void)
{
    ended = true;
    for (unsigned i = 0; i < known.count; i++)
        apply_confinement(&known.items[i]);
    if (phase == SCAN_READ)
        closedir(processes);
    phase = SCAN_IDLE;
    free(known.items);
    free(found.items);
    known = found = (struct process_list){0};
    if (timer.fd >= 0) {
        rmd_unwatch(&timer);
        close(timer.fd);
        timer.fd = -1;
    }
}
