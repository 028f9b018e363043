/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* now.h - clocks in nanoseconds, and the processor's own counter.  All times that processes and rmd
 * exchange are of the monotonic clock. */
#ifndef INV_NOW_H
#define INV_NOW_H

#include <stdint.h>
#include <time.h>

/* 0 when there is no such clock.  Thread safe, also in signal handlers. */
static inline uint64_t inv_clock_ns(clockid_t clock)
{
    struct timespec ts;
    return clock_gettime(clock, &ts)
               ? 0
               : (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t inv_now_ns(void) { return inv_clock_ns(CLOCK_MONOTONIC); }

/* What a clock has advanced; 0 where the later reading is the smaller one, as of another thread. */
static inline uint64_t inv_ns_since(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* Ticks of the processor's counter: 10 ns to read, and no call.  Only the MPI shim measures how
 * long a tick is (mpi-shim/measure/clock.h). */
static inline uint64_t inv_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return inv_now_ns();
#endif
}

#endif
