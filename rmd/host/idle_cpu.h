/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * idle_cpu.h - tells when a CPU has nothing to run, at no cost for threads that compute.
 *
 * A thread of the policy SCHED_IDLE wakes now and then.  It does not preempt a thread that computes, so while
 * all CPUs are computed on the thread stays in the kernel's queue, without timers.  As soon as a CPU
 * becomes idle, the kernel runs the thread there.
 *
 * The thread gets a small part of a busy CPU as well, now and then.  So a CPU counts as idle only if the thread ran
 * when it should, twice; on a busy one that is rare.
 */
#ifndef RMD_IDLE_CPU_H
#define RMD_IDLE_CPU_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

struct rmd_idle_cpu;

/*
 * rmd_idle_cpu_open - a watch of these CPUs, which does not run yet.  *fd is an eventfd of the caller's, which
 *       is readable when one of them was idle.  NULL: errno.
 * rmd_idle_cpu_watch - runs it until it finds one, which it tells once.  anew: with the shortest pauses; else
 *       pauses get longer, up to 24 ms, the more it finds in vain.
 * rmd_idle_cpu_pause - it is not to run for now.
 * rmd_idle_cpu_close - also NULL; *fd stays open.  The thread ends when it runs next: the caller does not wait.
 * One thread of the caller's at a time.
 */
struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd);
void rmd_idle_cpu_watch(struct rmd_idle_cpu *watch, bool anew);
void rmd_idle_cpu_pause(struct rmd_idle_cpu *watch);
void rmd_idle_cpu_close(struct rmd_idle_cpu *watch);

#endif
