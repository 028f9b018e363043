/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sched_latency.h - low wake-up latency for a thread that sleeps until it gets its own core back.
 *
 * The kernel lets a thread that computes finish its time slice, 3 ms and more, before another
 * thread that wakes on its core runs, unless the slice of the waking thread is shorter (Linux
 * 6.12).  So an owner asks for a short slice, and for exact timers, while it waits.  When it
 * computes it has its former slice again.
 */
#ifndef INV_SCHED_LATENCY_H
#define INV_SCHED_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

struct inv_sched_latency {
    bool changed;
    uint64_t slice_ns; /* former length of time slices; 0: it was not changed */
    int slack_ns;      /* former slack of timers */
};

/* Lowers the wake-up latency of the calling thread.  A second call does nothing.  What the kernel
 * refuses stays as it is. */
void inv_sched_latency_lower(struct inv_sched_latency *latency);
/* Restores what _lower has changed, if it has. */
void inv_sched_latency_restore(struct inv_sched_latency *latency);

#endif
