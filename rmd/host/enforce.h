/* SPDX-License-Identifier: GPL-3.0-or-later */
/* enforce.h - sets affinity and time slices of other processes' threads, confines them to the cores
 * of their user, and sends them signals. */
#ifndef RMD_ENFORCE_H
#define RMD_ENFORCE_H

#include "libinvasive/base/cpus.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * rmd_affinity_confine - narrows the affinity of each thread of the process to `allowed`.  A thread
 * with no CPU in `allowed` gets all of `allowed`.  So does a thread whose affinity is exactly
 * `before` (NULL: none).
 *   pidfd  of the process: makes sure that the pid is not another process's by now
 * Returns the number of threads that could run outside `allowed`.  It also finds threads that are
 * created meanwhile, unless the process has thousands: then it looks at each thread once.
 */
unsigned rmd_affinity_confine(pid_t pid, int pidfd, const struct inv_cpus *allowed,
                              const struct inv_cpus *before);

/* The process is in a cpuset with the CPUs `cpuset` now.  Threads whose affinity is exactly
 * `given`, or the part of it in `cpuset`, get `all`: the kernel narrows that to the cpuset. */
void rmd_affinity_release(pid_t pid, int pidfd, const struct inv_cpus *all,
                          const struct inv_cpus *given, const struct inv_cpus *cpuset);

/* Lets thread `tid` run on these CPUs only, if it is a thread of the process. */
void rmd_move_thread(pid_t pid, int pidfd, pid_t tid, const struct inv_cpus *cpus);

/* inv_slice_set (libinvasive/base/slice.h), if `tid` is a thread of the process; else returns 0. */
uint64_t rmd_set_slice(pid_t pid, int pidfd, pid_t tid, uint64_t slice_ns);

/* Pins thread `tid` to one CPU, if it is a thread of the process. */
void rmd_pin_thread(pid_t pid, int pidfd, pid_t tid, int cpu);

/* Threads of the process that are pinned to one CPU, and to none of these, may run on these. */
void rmd_affinity_rebind(pid_t pid, int pidfd, const struct inv_cpus *cpus);

/* Sends the signal to each thread of the process that runs or is ready; signal 0 sends nothing.  Returns the
 * number of these threads. */
unsigned rmd_signal_running(pid_t pid, int pidfd, int signal);

#endif
