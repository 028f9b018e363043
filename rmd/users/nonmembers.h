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

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

/*
 * rmd_nonmembers_begin - to be called before all others.
 *   possible  CPUs that a process may use without confinement
 *   cpusets   put descendants into their user's cpuset.  Where that fails, and for other processes,
 *             rmd sets the affinity: another service may manage processes by their control groups
 * Returns 0, or -1 with errno.
 */
int rmd_nonmembers_begin(const struct inv_cpus *possible, bool cpusets);

/* Begins a scan, unless one is under way or no process needs confinement. */
void rmd_nonmembers_scan(void);

/* The CPUs of a user have changed: begins a scan, after the one that is under way. */
void rmd_nonmembers_changed(void);

/* Lifts the confinement of all processes that were found. */
void rmd_nonmembers_end(void);

#endif
