/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* now.h - clocks in nanoseconds; the monotonic one is that of all times that processes and rmd tell
 * each other.  And the processor's own counter. */
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

/* Ticks, of which only the MPI shim knows how long they are: 10 ns to read, and no call. */
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
