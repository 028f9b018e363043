/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * steps.h - work in steps of equal length, and the time that it takes: for programs that measure while a thread
 * waits.  PROGRAM, defined before, begins the message of a failure.
 */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench/two.h"

#include <errno.h>
#include <stdbool.h>

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(errno));
    exit(1);
}

static long long now_ns(void)
{
    return (long long)two_now_ns();
}

static void sleep_until(long long ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static double sink;

static double spin(long n)
{
    volatile double x = 0;
    for (long i = 0; i < n; i++)
        x = x + 1;
    return x;
}

/* How many steps of one thread a millisecond has, as fast as it ever is. */
static inline int print_rate(void)
{
    enum { STEPS = 1000000 };
    long long best = 0;
    for (int i = 0; i < 20; i++) {
        long long start = now_ns();
        sink += spin(STEPS);
        long long took = now_ns() - start;
        best = !best || took < best ? took : best;
    }
    printf("steps_per_ms %.0f\n", STEPS * 1e6 / (double)best);
    return 0;
}

#endif
