/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unjoined.c - a look at all processes has two parts.  First it is noted who is there, of users with
 * a fence, and who comes from whom: a descendant of a member is one until it ends, also when its
 * parents have ended.  Then each is kept to its user's cores, or let go of.
 *
 * A process is named by pid and start time; what is done to it is done while a pidfd of it is open.
 */
#define _GNU_SOURCE
#include "unjoined.h"
#include "cgroup.h"
#include "enforce.h"
#include "fence.h"
#include "log.h"
#include "loop.h"
#include "now.h"
#include "procstat.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    SLICE_NS = 2000000, /* how long others wait for us at a time */
    REST = 9,           /* times as long as a slice took */
    PASSES = 16         /* over processes whose parents have larger numbers */
};

struct other {
    pid_t pid, parent;
    uid_t uid;
    uint64_t start_ticks;
    bool member;    /* the fence's own business */
    bool descended; /* from a member */
    bool cut;       /* to `given`, by us */
    struct inv_cpus given;
};

/* By pid. */
struct others {
    struct other *items;
    unsigned count, room;
};

static struct others known, found; /* by the last look; so far by the one under way */
static enum { RESTS, NOTES, KEEPS } phase;
static DIR *processes;
static unsigned next; /* of `known`, to be kept */
static bool again, ended; /* it is to be looked once more; nobody is to be kept */
static struct inv_cpus possible;
static bool cpusets;
static struct rmd_source timer = {.fd = -1};
static uint64_t rests_until_ns;

/* The number of the first that is not below it. */
static struct other *find(const struct others *in, pid_t pid)
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

static struct other *same(const struct others *in, const struct other *o)
{
    struct other *was = find(in, o->pid);
    return was && was->start_ticks == o->start_ticks ? was : NULL;
}

/* --- who is there */

static bool room_for_one(void)
{
    unsigned room = found.room ? 2 * found.room : 256;
    if (found.count < found.room)
        return true;
    struct other *items = realloc(found.items, room * sizeof *items);
    if (!items)
        return false; /* it is left out; who has been cut stays so */
    found.items = items;
    found.room = room;
    return true;
}

static void note(pid_t pid)
{
    struct rmd_procstat stat;
    uid_t uid;
    bool ours = pid > 0 && pid != getpid() && rmd_owner(pid, &uid) &&
                (rmd_fence_of(uid) || find(&known, pid));
    if (!ours || !rmd_procstat(pid, &stat) || stat.state == 'Z' || !room_for_one())
        return;
    /* as they are listed, in the order of their numbers; else nobody would be found again */
    if (found.count && found.items[found.count - 1].pid >= pid)
        return;
    found.items[found.count++] = (struct other){
        .pid = pid, .parent = stat.parent, .uid = uid, .start_ticks = stat.start_ticks};
}

/* --- whose are they */

static void mark_members(void)
{
    for (const struct rmd_fence *f = rmd_fences(); f; f = f->next)
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
            const struct rmd_process *p = &f->domain->procs[s];
            struct other *o = p->used ? find(&found, p->pid) : NULL;
            if (o && o->start_ticks == p->start_ticks)
                o->member = true;
        }
}

/* Who has become another program comes from a member: itself. */
static void mark_replaced(void)
{
    for (const struct rmd_fence *f = rmd_fences(); f; f = f->next)
        for (unsigned i = 0; i < RMD_REPLACED; i++) {
            const struct rmd_replaced *r = &f->domain->replaced[i];
            struct other *o = r->pid ? find(&found, r->pid) : NULL;
            if (o && o->start_ticks == r->start_ticks && o->uid == f->domain->uid)
                o->descended = true;
        }
}

static void recall(void)
{
    for (unsigned i = 0; i < found.count; i++) {
        struct other *o = &found.items[i];
        const struct other *was = same(&known, o);
        if (!was)
            continue;
        o->descended = was->descended;
        o->cut = was->cut;
        o->given = was->given;
    }
}

/* A child is of its parent's user, or nobody's that we know: with another user it has other rights. */
static void mark_descendants(void)
{
    bool changed = true;
    for (int pass = 0; changed && pass < PASSES; pass++) {
        changed = false;
        for (unsigned i = 0; i < found.count; i++) {
            struct other *o = &found.items[i];
            const struct other *parent = o->descended ? NULL : find(&found, o->parent);
            if (!parent || parent->uid != o->uid || !(parent->member || parent->descended))
                continue;
            o->descended = changed = true;
        }
    }
}

static void know(void)
{
    recall();
    mark_members();
    mark_replaced();
    mark_descendants();
    struct others was = known;
    known = found;
    found = (struct others){.items = was.items, .room = was.room};
    next = 0;
}

/* --- what is done to them */

static bool is_there(const struct other *o)
{
    struct rmd_procstat now;
    uid_t uid;
    return rmd_procstat(o->pid, &now) && now.start_ticks == o->start_ticks &&
           rmd_owner(o->pid, &uid) && uid == o->uid;
}

/* It was started before its parent came into the user's cpuset.  False: that does not keep it. */
static bool put_into_cpuset(const struct other *o, int pidfd)
{
    char *group = rmd_cgroup_of(o->pid, o->uid);
    bool is_in = !group || rmd_cgroup_enter(o->uid, o->pid, pidfd);
    if (!is_in)
        rmd_chat("user %u: process %d cannot be put into its cpuset", (unsigned)o->uid,
                 (int)o->pid);
    free(group);
    return is_in;
}

static void confine(struct other *o, int pidfd, const struct rmd_fence *f)
{
    const struct inv_cpus *to = f ? &f->allowed : &possible;
    /* new to us: a child may have been started with what the user had until now */
    const struct inv_cpus *before = o->cut ? &o->given : o->descended ? &f->before : NULL;
    unsigned outside = rmd_confine(o->pid, pidfd, to, before);
    if (outside)
        rmd_chat("user %u: %u threads of process %d, which has not joined, moved to its cores",
                 (unsigned)o->uid, outside, (int)o->pid);
    o->cut = f != NULL;
    o->given = *to;
}

static bool keep_by_cpuset(struct other *o, int pidfd, const struct rmd_fence *f)
{
    if (!f || !cpusets || !o->descended || f->loose || !put_into_cpuset(o, pidfd))
        return false;
    if (o->cut) /* while no cpuset kept it */
        rmd_release(o->pid, pidfd, &possible, &o->given, &f->cpus);
    o->cut = false;
    return true;
}

static void keep(struct other *o)
{
    const struct rmd_fence *f = ended ? NULL : rmd_fence_of(o->uid);
    if (f && (o->member || !(o->descended || f->whole)))
        f = NULL;
    o->cut &= !o->member;
    if (!f && !o->cut)
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, o->pid, 0);
    if (pidfd < 0)
        return;
    if (is_there(o) && !keep_by_cpuset(o, pidfd, f))
        confine(o, pidfd, f);
    close(pidfd);
}

/* --- a look */

static void begin(void)
{
    again = false;
    found.count = 0;
    processes = opendir("/proc");
    phase = processes ? NOTES : RESTS;
}

/* One process, or what follows the last one. */
static void go_on(void)
{
    struct dirent *e = phase == NOTES ? readdir(processes) : NULL;
    if (e) {
        note(atoi(e->d_name));
    } else if (phase == NOTES) {
        closedir(processes);
        know();
        phase = KEEPS;
    } else if (next < known.count) {
        keep(&known.items[next++]);
    } else {
        phase = RESTS;
        if (again)
            begin();
    }
}

/* A slice at once, or when we have rested. */
static void set_timer(void)
{
    rmd_ring_at(&timer, rests_until_ns ? rests_until_ns : 1);
}

static void slice(void)
{
    uint64_t from = inv_now_ns(), now = from;
    while (phase != RESTS && now - from < SLICE_NS) {
        go_on();
        now = inv_now_ns();
    }
    rests_until_ns = now + REST * (now - from);
    if (phase != RESTS)
        set_timer();
}

static void timer_rang(struct rmd_source *source, uint32_t events)
{
    uint64_t expirations;
    (void)events;
    if (read(source->fd, &expirations, sizeof expirations) != sizeof expirations)
        return;
    if (phase == RESTS)
        begin();
    slice();
}

int rmd_unjoined_begin(const struct inv_cpus *all, bool by_cpuset)
{
    possible = *all;
    cpusets = by_cpuset;
    timer = (struct rmd_source){timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                                timer_rang};
    return timer.fd < 0 ? -1 : rmd_watch(&timer, EPOLLIN);
}

/* Is anybody kept from something, or has been? */
static bool needed(void)
{
    for (const struct rmd_fence *f = rmd_fences(); f; f = f->next)
        if (!inv_cpus_equal(&f->allowed, &possible))
            return true;
    for (unsigned i = 0; i < known.count; i++)
        if (known.items[i].cut && !inv_cpus_equal(&known.items[i].given, &possible))
            return true;
    return false;
}

void rmd_unjoined_look(void)
{
    if (phase == RESTS && needed())
        set_timer();
}

void rmd_unjoined_changed(void)
{
    again = phase != RESTS;
    rmd_unjoined_look();
}

void rmd_unjoined_end(void)
{
    ended = true;
    for (unsigned i = 0; i < known.count; i++)
        keep(&known.items[i]);
    if (phase == NOTES)
        closedir(processes);
    phase = RESTS;
    free(known.items);
    free(found.items);
    known = found = (struct others){0};
    if (timer.fd >= 0) {
        rmd_unwatch(&timer);
        close(timer.fd);
        timer.fd = -1;
    }
}
