/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* now.h - the clock of all times that processes and rmd tell each other. */
#ifndef INV_NOW_H
#define INV_NOW_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC.  Thread safe, also in signal handlers. */
static inline uint64_t inv_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
