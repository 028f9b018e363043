/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* now.h - clocks in nanoseconds; the monotonic one is that of all times that processes and rmd tell
 * each other. */
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

#endif
