/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dynamic_order.c - the iterations that a thread gets of a dynamic or guided loop come in the loop's
 * order, whatever other threads take meanwhile: programs rely on it, although since OpenMP 5 only
 * schedule(monotonic: dynamic) promises it.
 * @changing
 */
#include "../check.h"
#include <limits.h>
#include <omp.h>

enum { LOOPS = 30, N = 600, SLOW_US = 2000, MOST_THREADS = 256 };

/* By thread number: the iteration before. */
static struct {
    long i;
} __attribute__((aligned(64))) last[MOST_THREADS];

static void work(long i)
{
    long *before = &last[omp_get_thread_num()].i;
    CHECK(i > *before, "iteration %ld comes after %ld", i, *before);
    *before = i;
    if (i % 200 == 3) /* the others are through with theirs */
        usleep(SLOW_US);
}

#define BEGIN last[omp_get_thread_num()].i = LONG_MIN

static void in_a_region(void)
{
#pragma omp parallel
    {
        BEGIN;
#pragma omp for schedule(dynamic)
        for (long i = 0; i < N; i++)
            work(i);
        BEGIN;
#pragma omp for schedule(dynamic, 3) nowait
        for (unsigned long long i = 0; i < N; i++)
            work((long)i);
        BEGIN;
#pragma omp for schedule(guided)
        for (long i = 0; i < N; i++)
            work(i);
        BEGIN;
#pragma omp for schedule(runtime)
        for (long i = N; i > 0; i--)
            work(-i);
    }
}

static void as_a_region(void)
{
#pragma omp parallel
    BEGIN;
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < N; i++)
        work(i);
#pragma omp parallel
    BEGIN;
#pragma omp parallel for schedule(runtime)
    for (long i = 0; i < N; i++)
        work(i);
}

int main(void)
{
    CHECK(omp_get_max_threads() <= MOST_THREADS, "more threads than expected");
    omp_set_schedule(omp_sched_dynamic, 2);
    for (int loop = 0; loop < LOOPS; loop++) {
        in_a_region();
        as_a_region();
    }
    puts("OK");
    return 0;
}
