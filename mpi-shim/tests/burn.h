/* SPDX-License-Identifier: GPL-3.0-or-later */
/* burn.h - work for the tests' programs that is measured in processor time: so is the ratio of what
 * ranks compute on a busy machine. */
#ifndef BURN_H
#define BURN_H

#include <time.h>

static inline double cpu_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void burn_ms(double ms)
{
    double until = cpu_s(CLOCK_THREAD_CPUTIME_ID) + 1e-3 * ms;
    while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

#endif
