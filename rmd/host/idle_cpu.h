/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * idle_cpu.h - tells when a CPU has nothing to run, at no cost for threads that compute.
 *
 * On each CPU a thread with the policy SCHED_IDLE wakes up now and then.  It does not preempt a
 * thread that computes, so it runs in time only if its CPU has nothing else to run.  (One thread
 * for all CPUs would not do: it wakes on the CPU where it has slept, and if all CPUs were busy
 * lately the kernel does not look for an idle one.)
 *
 * The thread also gets a small part of a busy CPU, but seldom in time: a CPU counts as idle when
 * the thread has run in time twice.
 *
 * A process has ended when its last thread has.  So on busy CPUs the parent of an rmd that is killed
 * or ends sees that some tenths of a second later, when these threads have run once more.
 */
#ifndef RMD_IDLE_CPU_H
#define RMD_IDLE_CPU_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

struct rmd_idle_cpu;

/*
 * rmd_idle_cpu_open - makes a watch of these CPUs, which does not run yet.  *fd is an eventfd,
 *       which the caller closes; it is readable when one of the CPUs was idle.  NULL with errno.
 * rmd_idle_cpu_watch - runs the watch until it finds an idle CPU, which it reports once.  The
 *       pauses between wake-ups grow up to 32 ms.  anew: they are the shortest ones for about a
 *       second, since the last report was of use.
 * rmd_idle_cpu_pause - stops the watch for now.
 * rmd_idle_cpu_close - frees the watch, which may be NULL; *fd stays open.  The watch's threads end
 *       when they run next: the caller does not wait.
 * One thread of the caller at a time.
 */
struct rmd_idle_cpu *rmd_idle_cpu_open(const struct inv_cpus *cpus, int *fd);
void rmd_idle_cpu_watch(struct rmd_idle_cpu *watch, bool anew);
void rmd_idle_cpu_pause(struct rmd_idle_cpu *watch);
void rmd_idle_cpu_close(struct rmd_idle_cpu *watch);

#endif
