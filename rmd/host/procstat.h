/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * procstat.h - what the kernel says of a process and of its threads, by files of /proc.
 *
 * The kernel updates the processor time of a thread when the thread stops running, and at its
 * ticks, 1 to 10 ms apart: a thread whose time has not changed may run.  So its state is read then,
 * which takes several times as long.
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

/* False when there is no such process.  A process that is dead but not waited for has state 'Z'.
 * If its first thread has ended, and others go on, the state is that of another thread. */
bool rmd_procstat(pid_t pid, struct rmd_procstat *stat);

/* Number of threads that run or are ready, of the first 256. */
unsigned rmd_threads_running(pid_t pid);
/* The kernel's name of the process; "" if there is no such process. */
void rmd_process_name(pid_t pid, char *name, size_t bytes);
/* Time in ns for which CPUs were not idle so far, summed over all CPUs, by /proc below `root` (""
 * for /); 0: unknown. */
uint64_t rmd_machine_ran(const char *root);
/* The element with this pid, or NULL, of `count` elements of `size` bytes, which begin with a pid_t and are in
 * ascending order of it. */
void *rmd_find_pid(pid_t pid, const void *elements, size_t count, size_t size);

/* Returns `items` with room for one more element of `size` bytes, reallocated to twice the capacity
 * if all is used; the old pointer is invalid then.  NULL: no memory, and nothing has changed. */
void *rmd_grow(void *items, unsigned count, unsigned *capacity, size_t size);

/* The owner of the process, also if its files in /proc are not readable.  False: there is no such
 * process. */
bool rmd_owner(pid_t pid, uid_t *uid);

/* Does the process of this pidfd live?  If not, its pid may soon be another process's. */
bool rmd_alive(int pidfd);

/* --- threads of another process */

/* A thread that is looked at again and again.  Begins as RMD_FOLLOWED_NONE. */
struct rmd_followed {
    pid_t tid;       /* 0: none */
    int time_fd;     /* its schedstat */
    int state_fd;    /* its stat; -1 until its state is read */
    uint64_t ran_ns; /* at the last look */
};
#define RMD_FOLLOWED_NONE {.time_fd = -1, .state_fd = -1}

/* rmd_thread_follow - opens the files of this thread of this process.  False: there is no such
 *                     thread, or no descriptor is left; *thread is none then.
 * rmd_thread_unfollow - closes them. */
bool rmd_thread_follow(struct rmd_followed *thread, pid_t pid, pid_t tid);
void rmd_thread_unfollow(struct rmd_followed *thread);

/* How long (ns) the thread has run since the last call.  A thread that has ended: 0. */
uint64_t rmd_thread_ran(struct rmd_followed *thread);
/* Does the thread sleep in the kernel, or has it ended?  A thread that waits for a processor, or
 * that a signal or a debugger has stopped, does not sleep. */
bool rmd_thread_sleeps(struct rmd_followed *thread);

/* Processor time (ns) of all threads of a process; 0: unknown. */
uint64_t rmd_process_ran(pid_t pid);

#endif
