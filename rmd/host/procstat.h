/* SPDX-License-Identifier: GPL-3.0-or-later */
/* procstat.h - what the kernel says of a process, /proc/PID/stat. */
#ifndef RMD_PROCSTAT_H
#define RMD_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rmd_procstat {
    char state;           /* 'T': stopped by a signal, with all its threads */
    pid_t parent;         /* 1 or another's when the parent has ended */
    unsigned flags;       /* the kernel's PF_ of its first thread */
    uint64_t start_ticks; /* since boot: with the pid, it names a process for ever */
};

/* False when there is no such process; one that is dead but not waited for is state 'Z'.  One whose
 * first thread has ended has the state of another of its threads: it goes on. */
bool rmd_procstat(pid_t pid, struct rmd_procstat *stat);

/* The owner of the process, also of one whose files in /proc are not readable. */
bool rmd_owner(pid_t pid, uid_t *uid);

/* A pidfd is readable when its process is dead, and its pid another's before long. */
bool rmd_alive(int pidfd);

#endif
