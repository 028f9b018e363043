/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * thread_limits.h - how many threads could this process start?
 */
#ifndef GOMP_THREAD_LIMITS_H
#define GOMP_THREAD_LIMITS_H 1

#include <limits.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)
/* How many threads with stacks of the default size (OMP_STACKSIZE) could be started beside those
 * that there are: as far as RLIMIT_AS, RLIMIT_DATA, RLIMIT_NPROC, pids.max of the control groups and
 * the kernel's limit on committed memory tell.  Of what all processes of a user or a control group
 * have in common, this process counts the part of one rank.  ULONG_MAX: no limit is known. */
extern unsigned long gomp_threads_left (void);
/* The same as far as RLIMIT_NPROC and pids.max tell, less those that the program itself could not
 * start any more although it can with stock libgomp. */
extern unsigned long gomp_threads_to_spare (void);
/* Does RLIMIT_AS leave a process that is not managed yet the address space for the core table, so many
 * threads and those of the runtime? */
extern bool gomp_space_to_join (unsigned nthreads);
#pragma GCC visibility pop
#endif
