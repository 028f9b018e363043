/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * clock.h - time in ticks of the processor's own counter, which costs 10 ns to read and
 * no call.  Ticks are for differences within a process; shim_clock_start and
 * shim_clock_measure find out how long a tick is.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include "libinvasive/process.h"

#pragma GCC visibility push(hidden)

/* Written in set-up, by shim_clock_start and shim_clock_measure. */
extern struct shim_clock {
    uint64_t us; /* ticks per microsecond */
    uint64_t begin_ticks, begin_ns; /* when shim_clock_start was called */
} shim_clock;

static inline uint64_t shim_ticks(void) { return inv_ticks(); }

static inline uint64_t shim_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)((double)ticks * 1000.0 / (double)shim_clock.us);
}

static inline uint64_t shim_ns_to_ticks(uint64_t ns)
{
    return (uint64_t)((double)ns * (double)shim_clock.us / 1000.0);
}

/* Processor time of the calling thread; a system call. */
static inline uint64_t shim_thread_cpu_ns(void)
{
    return inv_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Called in set-up, some milliseconds apart: the first notes the time, the second sets
 * shim_clock.us. */
void shim_clock_start(void);
void shim_clock_measure(void);

#pragma GCC visibility pop

#endif
