/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * procstat.h - what the kernel says of a process and of its threads, by files of /proc.
 *
 * The kernel brings a running thread's time up to date when it stops to run, and at its ticks, 1 to
 * 10 ms apart: a time that stands still proves nothing.  So a thread whose time stands still is asked
 * for its state, which takes several times as long.
 */
#ifndef RMD_PROCSTAT_H
#define RMD_PROCSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rmd_procstat {
    char state;           /* 'T': stopped by a signal, with all its threads */
    pid_t parent;         /* 1 or another's when the parent has ended */
    unsigned flags;       /* the kernel's PF_ of its first thread */
    uint64_t start_ticks; /* since boot: with the pid, it names a process for ever */
    uint64_t ran_ticks;   /* processor time */
};

/* False when there is no such process; one that is dead but not waited for is state 'Z'.  One whose
 * first thread has ended has the state of another of its threads: it goes on. */
bool rmd_procstat(pid_t pid, struct rmd_procstat *stat);

/* Threads that run or are ready, of the first 256. */
unsigned rmd_threads_running(pid_t pid);
/* What the kernel calls it; "" if there is none. */
void rmd_process_name(pid_t pid, char *name, size_t bytes);
/* Processor time that all CPUs have spent so far, not idle, in ns, by /proc below `root` ("" for /); 0 if it
 * cannot be told. */
uint64_t rmd_machine_ran(const char *root);
/* The element with this pid, or NULL, of `count` elements of `size` bytes, which begin with a pid_t and are in
 * ascending order of it. */
void *rmd_find_pid(pid_t pid, const void *elements, size_t count, size_t size);

/* `items` with room for one more element of `size` bytes: twice the capacity where all is used. The
 * caller's pointer is void then.  NULL: no memory, and nothing has changed. */
void *rmd_grow(void *items, unsigned count, unsigned *capacity, size_t size);

/* The owner of the process, also of one whose files in /proc are not readable. */
bool rmd_owner(pid_t pid, uid_t *uid);

/* A pidfd is readable when its process is dead, and its pid another's before long. */
bool rmd_alive(int pidfd);

/* --- threads of another process */

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
