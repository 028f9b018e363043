/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nonmembers.h - confinement of processes that are not members of their user's domain.  Descendants
 * of members are confined to the user's cores as members are (confine.h).  Where the operator asks
 * for it (struct rmd_confinement, whole_user), so are all other processes of the user.
 *
 * A scan of /proc finds them.  A user can have any number of processes, so a scan runs in slices
 * and takes at most a tenth of a processor's time.  The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_NONMEMBERS_H
#define RMD_NONMEMBERS_H

#include "rmd/users/confine.h"
#include "rmd/loop/loop.h"

#include <dirent.h>

struct rmd_user_process;

/* Sorted by pid. */
struct rmd_process_list {
    struct rmd_user_process *items;
    unsigned count, capacity;
};

/* Written by nonmembers.c only. */
struct rmd_nonmembers {
    const struct rmd_enforcement *enforcement;
    struct rmd_process_list known, found; /* by the last scan; so far by the one under way */
    enum { RMD_SCAN_IDLE, RMD_SCAN_READ, RMD_SCAN_CONFINE } phase;
    DIR *processes;
    unsigned next;     /* index in `known` of the next process to confine */
    bool again, ended; /* scan once more; confine no process any more */
    struct rmd_source timer;
    uint64_t backoff_until_ns;
};

/*
 * rmd_nonmembers_begin - to be called before all others, after rmd_enforcement_begin.  With cpusets
 * rmd puts descendants into their user's cpuset.  Where that fails, and for other processes, rmd
 * sets the affinity: another service may manage processes by their control groups.
 * Returns 0, or -1 with errno.
 */
int rmd_nonmembers_begin(struct rmd_nonmembers *nonmembers,
                         const struct rmd_enforcement *enforcement);

/* Begins a scan, unless one is under way or no process needs confinement. */
void rmd_nonmembers_scan(struct rmd_nonmembers *nonmembers);

/* The CPUs of a user have changed: begins a scan, after the one that is under way. */
void rmd_nonmembers_changed(struct rmd_nonmembers *nonmembers);

/* Lifts the confinement of all processes that were found.  Before the users are freed. */
void rmd_nonmembers_end(struct rmd_nonmembers *nonmembers);

#endif
