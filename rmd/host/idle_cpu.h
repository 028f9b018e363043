/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * idle_cpu.h - tells when a CPU has nothing to run, at no cost for threads that compute.
 *
 * A thread of the policy SCHED_IDLE wakes now and then on each CPU.  It does not preempt a thread that computes, so
 * it runs when it should only where no other thread does.  (One thread for all CPUs would not do: it wakes on the CPU where
 * it has slept, and where all CPUs were busy lately, the kernel does not look for an idle one.)
 *
 * The thread gets a small part of a busy CPU as well, now and then, but seldom in time: a CPU counts as idle when
 * the thread ran in time twice.
 */
#ifndef RMD_IDLE_CPU_H
#define RMD_IDLE_CPU_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

struct rmd_idle_cpu;

/*
 * rmd_idle_cpu_open - a watch of these CPUs, which does not run yet.  *fd is an eventfd of the caller's, which
 *       is readable when one of them was idle.  NULL: errno.
 * rmd_idle_cpu_watch - runs it until it finds one, which it tells once.  anew: with the shortest pauses for about a
 *       second, since it was of use; later, and else, they get longer, up to 32 ms.
 * rmd_idle_cpu_pause - it is not to run for now.
 * rmd_idle_cpu_close - also NULL; *fd stays open.  Threads end when they run next: the caller does not wait.
 * One thread of the caller's at a time.
 */
struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd);
void rmd_idle_cpu_watch(struct rmd_idle_cpu *watch, bool anew);
void rmd_idle_cpu_pause(struct rmd_idle_cpu *watch);
void rmd_idle_cpu_close(struct rmd_idle_cpu *watch);

#endif
