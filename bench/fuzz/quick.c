/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quick.c - what rmd asks of the kernel about processes, answered without it, for all fuzzers: it
 * took most of their time.  There are two processes, this one and its parent, and they live.  None
 * of their threads can be looked at; no thread sleeps, so wake-ups wake none, and no bell of a domain is ever rung.
 * No CPU is idle.
 *
 * fuzz.py links with --wrap for the functions of the C library.
 */
#define _GNU_SOURCE
#include "rmd/domain/bell.h"
#include "fuzz.h"
#include "rmd/host/idle_cpu.h"
#include "rmd/host/procstat.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_FD = 1 << 20 }; /* in place of a descriptor that is not read */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
pid_t __real_getppid(void);
pid_t __wrap_getppid(void);

int fuzz_keeps[FUZZ_KEEPS];

pid_t __wrap_getpid(void)
{
    static pid_t pid;
    return pid ? pid : (pid = __real_getpid());
}

pid_t __wrap_getppid(void)
{
    static pid_t pid;
    return pid ? pid : (pid = __real_getppid());
}

static bool lives(pid_t pid) { return pid == __wrap_getpid() || pid == __wrap_getppid(); }

/* As many as come in registers, given or not. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
    if (number == SYS_futex)
        return 0;
    if (number != SYS_pidfd_open)
        return __real_syscall(number, a, b, c, d, e);
    errno = ESRCH;
    return lives((pid_t)a) ? NO_FD : -1;
}

int __wrap_close(int fd)
{
    for (int i = 0; i < FUZZ_KEEPS; i++)
        if (fuzz_keeps[i] && fd == fuzz_keeps[i])
            return 0;
    errno = EBADF;
    return fd < 0 || fd == NO_FD ? -1 : __real_close(fd);
}

int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    return fd == NO_FD ? 0 : __real_epoll_ctl(epoll, what, fd, event);
}

/* Its caller writes zeros then. */
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    (void)fd, (void)mode, (void)offset, (void)bytes;
    errno = EOPNOTSUPP;
    return -1;
}

bool rmd_procstat(pid_t pid, struct rmd_procstat *stat)
{
    *stat = (struct rmd_procstat){.state = 'R', .start_ticks = 1};
    return lives(pid);
}

bool rmd_owner(pid_t pid, uid_t *uid)
{
    *uid = geteuid();
    return lives(pid);
}

bool rmd_alive(int pidfd) { return pidfd == NO_FD; }

bool rmd_thread_follow(struct rmd_followed *thread, pid_t pid, pid_t tid)
{
    (void)thread, (void)pid, (void)tid;
    return false;
}

void rmd_thread_unfollow(struct rmd_followed *thread) { (void)thread; }

uint64_t rmd_thread_ran(struct rmd_followed *thread)
{
    (void)thread;
    return 0;
}

bool rmd_thread_sleeps(struct rmd_followed *thread)
{
    (void)thread;
    return false;
}

uint64_t rmd_process_ran(pid_t pid)
{
    (void)pid;
    return 0;
}

unsigned rmd_threads_running(pid_t pid)
{
    (void)pid;
    return 1;
}

void rmd_process_name(pid_t pid, char *name, size_t bytes)
{
    snprintf(name, bytes, "%d", (int)pid);
}

uint64_t rmd_machine_ran(const char *root)
{
    (void)root;
    return 0;
}

void *rmd_find_pid(pid_t pid, const void *elements, size_t count, size_t size)
{
    const char *element = elements;
    for (size_t i = 0; i < count; i++, element += size)
        if (*(const pid_t *)(const void *)element == pid)
            return (void *)element;
    return NULL;
}

int rmd_bell_start(struct rmd_bell *bell, struct inv_table *table)
{
    bell->table = table;
    bell->source.fd = NO_FD;
    bell->running = true;
    return 0;
}

void rmd_bell_take(struct rmd_bell *bell) { (void)bell; }

void rmd_bell_done(struct rmd_bell *bell) { (void)bell; }

void rmd_bell_stop(struct rmd_bell *bell) { bell->running = false; }

struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd)
{
    static char none;
    (void)cpus;
    *fd = NO_FD;
    return (void *)&none;
}

void rmd_idle_cpu_watch(struct rmd_idle_cpu *watch, bool anew) { (void)watch, (void)anew; }

void rmd_idle_cpu_pause(struct rmd_idle_cpu *watch) { (void)watch; }

void rmd_idle_cpu_close(struct rmd_idle_cpu *watch) { (void)watch; }
