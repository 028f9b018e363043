/* SPDX-License-Identifier: GPL-3.0-or-later */
/* enforce.h - keeping the threads of a process where its user's cores are, whatever they want. */
#ifndef RMD_ENFORCE_H
#define RMD_ENFORCE_H

#include "cpus.h"

#include <sys/types.h>

/*
 * rmd_confine - no thread of the process may run outside `allowed`: what a thread may use is cut
 * down to that, to all of it when nothing would be left.  A thread that has exactly `before` (NULL:
 * none) gets `allowed`, which may be more.
 *   pidfd  of the process, so that no other one is meant
 * Returns how many threads were outside.  Threads that it makes meanwhile are seen too, but not of
 * one that has thousands: for more than one look at each of those nobody waits.
 */
unsigned rmd_confine(pid_t pid, int pidfd, const struct inv_cpus *allowed,
                     const struct inv_cpus *before);

/* Threads that have exactly what they were `given`, or what of that is in the `cpuset` that keeps
 * the process now, may use `all`, of which that leaves them its own. */
void rmd_release(pid_t pid, int pidfd, const struct inv_cpus *all, const struct inv_cpus *given,
                 const struct inv_cpus *cpuset);

/* Pin the thread to one CPU, if it is one of the process. */
void rmd_pin_thread(pid_t pid, int pidfd, pid_t tid, int cpu);

#endif
