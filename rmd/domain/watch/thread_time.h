/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thread_time.h - whether a thread of another process runs, by files of /proc.
 *
 * The kernel brings a running thread's time up to date when it stops to run, and at its ticks, 1 to
 * 10 ms apart: a time that stands still proves nothing.  So a thread whose time stands still is asked
 * for its state, which takes several times as long.
 */
#ifndef RMD_THREAD_TIME_H
#define RMD_THREAD_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread that is looked at again and again.  Zeros but for the descriptors, -1. */
struct rmd_followed {
    pid_t tid;       /* 0: none */
    int time_fd;     /* its schedstat */
    int state_fd;    /* its stat; -1 until its state is asked for */
    uint64_t ran_ns; /* at the last look */
};
#define RMD_FOLLOWED_NONE {.time_fd = -1, .state_fd = -1}

/* follow - from now on this thread of this process is looked at.  False: there is none, or no
 *          descriptor is left; none is followed then.
 * unfollow - none is looked at. */
bool rmd_thread_follow(struct rmd_followed *thread, pid_t pid, pid_t tid);
void rmd_thread_unfollow(struct rmd_followed *thread);

/* How long it has run since the last look, ns.  A thread that has ended: 0. */
uint64_t rmd_thread_ran(struct rmd_followed *thread);
/* Does it sleep in the kernel, or is it gone?  One that waits for a processor, or that a signal or a
 * debugger has stopped, does not sleep. */
bool rmd_thread_sleeps(struct rmd_followed *thread);

/* Processor time of a process, all threads; 0 when it cannot be told. */
uint64_t rmd_process_ran(pid_t pid);

#endif
