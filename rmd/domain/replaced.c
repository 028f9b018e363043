/* SPDX-License-Identifier: GPL-3.0-or-later */
/* replaced.c - see replaced.h.  A lock's place in the file is when its process joined: no two of a
 * table are the same. */
#define _GNU_SOURCE
#include "rmd/domain/replaced.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/domain/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
    PATH_BYTES = 40,
    DYING = 0x4,       /* PF_EXITING of the kernel's sched.h */
    LOOK_NS = 1000000, /* that a look may take */
};

static void proc_fd_path(char path[PATH_BYTES], int fd)
{
    snprintf(path, PATH_BYTES, "/proc/self/fd/%d", fd);
}

static struct flock lock_of(const struct rmd_process *p)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)(p->start_ns & INT64_MAX),
                          .l_len = 1};
}

int rmd_replaced_begin(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    struct flock lock = lock_of(p);
    char path[PATH_BYTES];
    proc_fd_path(path, d->table_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC); /* a copy of the descriptor would be the same file */
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock)) {
        close(fd);
        fd = -1;
    }
    p->locks = fd >= 0;
    rmd_state_save(d);
    return fd;
}

/* Has the member's file been closed, so that its lock is free? */
static bool is_unlocked(const struct rmd_domain *d, const struct rmd_process *p)
{
    struct flock lock = lock_of(p);
    return !fcntl(d->table_fd, F_OFD_GETLK, &lock) && lock.l_type == F_UNLCK;
}

/* A process that ends has no memory any more a moment before its pidfd says so.  The pidfd is asked
 * last: a process that is reaped in between has no file of its state in /proc. */
static bool is_dying(struct rmd_process *p)
{
    struct rmd_procstat now;
    return (rmd_procstat(p->pid, &now) && now.flags & DYING) || !rmd_alive(p->pidfd.fd);
}

static bool is_replaced(const struct rmd_domain *d, struct rmd_process *p)
{
    return p->used && p->locks && is_unlocked(d, p) && !is_dying(p);
}

static void add_replaced(struct rmd_domain *d, const struct rmd_process *p)
{
    d->replaced[d->nreplaced++ % RMD_REPLACED] =
        (struct rmd_replaced){.pid = p->pid, .start_ticks = p->start_ticks};
}

bool rmd_replaced_is_back(struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    for (unsigned i = 0; i < RMD_REPLACED; i++) {
        struct rmd_replaced *r = &d->replaced[i];
        if (r->pid != p->pid || r->start_ticks != p->start_ticks)
            continue;
        r->pid = 0;
        return true;
    }
    return false;
}

void rmd_replaced_forget(struct rmd_domain *d)
{
    memset(d->replaced, 0, sizeof d->replaced);
}

/* Members can hold as many locks as they like, and the kernel searches all of them.  So a look that
 * takes too long ends early, and the next one goes on with the next member. */
static void check_members(struct rmd_domain *d, uint64_t begun)
{
    for (unsigned n = 0; n < INV_MAX_SLOTS && d->table; n++) {
        unsigned slot = d->looked_at++ % INV_MAX_SLOTS;
        struct rmd_process *p = &d->procs[slot];
        if (is_replaced(d, p)) {
            rmd_log(RMD_INFO, "process %d has become another program, or unmapped the core table",
                    (int)p->pid);
            add_replaced(d, p);
            rmd_domain_leave(d, p->pid);
        }
        if (p->used && rmd_rate_limit_clock() - begun > LOOK_NS)
            return;
    }
}

/* Members can also close files of the table as often as they like.  rmd ignores the events of a
 * user above the rate limit until a later check. */
static void check_within_limit(struct rmd_domain *d, uint64_t begun)
{
    bool waits = rmd_rate_limit_due_ns(&d->shared->rates, d->uid) > inv_now_ns();
    if (d->closed_files.fd >= 0 && d->closed_files_wait != waits) {
        d->closed_files_wait = waits;
        if (waits)
            rmd_unwatch(&d->closed_files);
        else
            rmd_watch(&d->closed_files, EPOLLIN);
    }
    if (waits)
        return;
    check_members(d, begun);
    rmd_rate_limit_charge(&d->shared->rates, d->uid, rmd_rate_limit_clock() - begun);
}

void rmd_replaced_check(struct rmd_domain *d) { check_within_limit(d, rmd_rate_limit_clock()); }

static void handle_file_closed(struct rmd_source *source, uint32_t events)
{
    uint64_t begun = rmd_rate_limit_clock();
    char buffer[4096] __attribute__((aligned(8)));
    (void)events;
    while (read(source->fd, buffer, sizeof buffer) == sizeof buffer)
        ;
    check_within_limit((void *)((char *)source - offsetof(struct rmd_domain, closed_files)), begun);
}

void rmd_replaced_watch(struct rmd_domain *d)
{
    char path[PATH_BYTES];
    proc_fd_path(path, d->table_fd);
    int fd = d->leaves_to_checks ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    d->closed_files = (struct rmd_source){fd, handle_file_closed};
    d->closed_files_wait = false;
    if (fd < 0 ||
        (inotify_add_watch(fd, path, IN_CLOSE_WRITE) >= 0 && !rmd_watch(&d->closed_files, EPOLLIN)))
        return;
    close(fd);
    d->closed_files.fd = -1;
}

void rmd_replaced_unwatch(struct rmd_domain *d)
{
    if (d->closed_files.fd < 0)
        return;
    if (!d->closed_files_wait)
        rmd_unwatch(&d->closed_files);
    close(d->closed_files.fd);
    d->closed_files.fd = -1;
}
