/* SPDX-License-Identifier: GPL-3.0-or-later */
/* thread_time.c - "RUNNING_NS WAITING_NS TIMES" of schedstat, "PID (NAME) STATE ..." of stat. */
#define _GNU_SOURCE
#include "rmd/domain/watch/thread_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int open_file(pid_t pid, pid_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rmd_thread_unfollow(struct rmd_followed *t)
{
    close_file(&t->time_fd);
    close_file(&t->state_fd);
    t->tid = 0;
    t->ran_ns = 0;
}

bool rmd_thread_follow(struct rmd_followed *t, pid_t pid, pid_t tid)
{
    rmd_thread_unfollow(t);
    t->time_fd = open_file(pid, tid, "schedstat");
    t->state_fd = open_file(pid, tid, "stat");
    if (t->time_fd < 0 || t->state_fd < 0) {
        rmd_thread_unfollow(t);
        return false;
    }
    t->tid = tid;
    rmd_thread_ran(t);
    return true;
}

uint64_t rmd_thread_ran(struct rmd_followed *t)
{
    char text[80];
    ssize_t n = pread(t->time_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    uint64_t before = t->ran_ns;
    t->ran_ns = strtoull(text, NULL, 10);
    return t->ran_ns > before ? t->ran_ns - before : 0;
}

bool rmd_thread_sleeps(struct rmd_followed *t)
{
    char text[160]; /* the name has 64 bytes at most */
    ssize_t n = pread(t->state_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && rest[1] == ' ' && strchr("SDIZX", rest[2]);
}

uint64_t rmd_process_ran(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
