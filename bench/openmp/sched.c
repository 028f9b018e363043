/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sched.c - what a work-shared loop costs beyond its iterations, in nanoseconds per loop, for
 * each schedule and chunk size.  256 iterations of some 30 ns for each thread.
 *
 * sched [--cores=N] [--sample-us=T] [--budget-ms=T] [--warm-up-ms=T] [schedule_chunk ...]
 */
#include "measure.h"

#include <omp.h>

enum { STEPS = 20, ITERATIONS = 256, LARGEST_CHUNK = 128 };

/* Without a branch.  At the end of a loop of so few turns the processor guesses wrong in some layouts of the
 * code and not in others: 4 ns for each iteration, which has nothing to do with the runtime. */
static inline void iteration(void)
{
    uint64_t x = STEPS;
    __asm__ volatile("" : "+r"(x)); /* else the compiler does the work */
#pragma GCC unroll 32
    for (int i = 0; i < STEPS; i++)
        x = work(x, 1);
    __asm__ volatile("" ::"r"(x));
}

static void serial(long repeats, const void *what)
{
    (void)what;
    for (long i = 0; i < repeats; i++)
        for (int k = 0; k < ITERATIONS; k++)
            iteration();
}

/* Every thread counts its iterations; no iteration may be missed or done twice. */
#define LOOP(NAME, SCHEDULE)                                                                       \
    static void NAME(long repeats, const void *what)                                               \
    {                                                                                              \
        int chunk = *(const int *)what;                                                            \
        long all = 0, sum = 0, n = (long)ITERATIONS * omp_get_max_threads();                       \
        _Pragma("omp parallel reduction(+ : all, sum)") for (long i = 0; i < repeats; i++)         \
        {                                                                                          \
            _Pragma(SCHEDULE) for (long k = 0; k < n; k++)                                         \
            {                                                                                      \
                iteration();                                                                       \
                all++;                                                                             \
                sum += k;                                                                          \
            }                                                                                      \
        }                                                                                          \
        demand(all == repeats * n && sum == repeats * (n * (n - 1) / 2) && chunk > 0, #NAME);      \
    }

LOOP(static_loop, "omp for schedule(static, chunk)")
LOOP(dynamic_loop, "omp for schedule(dynamic, chunk)")
LOOP(guided_loop, "omp for schedule(guided, chunk)")

static const struct schedule {
    const char *name;
    sample_fn fn;
} schedules[] = {{"static", static_loop}, {"dynamic", dynamic_loop}, {"guided", guided_loop}};

int main(int argc, char **argv)
{
    int cores = (int)option(argc, argv, "--cores", 2), threads = omp_get_max_threads();
    struct sampling how = {.sample_ns = 1e3 * option(argc, argv, "--sample-us", 500),
                           .budget_ns = 1e6 * option(argc, argv, "--budget-ms", 30)};
    int rounds = cores > 0 ? (threads + cores - 1) / cores : 1;
    warm_up(option(argc, argv, "--warm-up-ms", 100));
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
        for (int chunk = 1; chunk <= LARGEST_CHUNK; chunk *= 2) {
            char name[32];
            snprintf(name, sizeof name, "%s_%d", schedules[i].name, chunk);
            if (!chosen(argc, argv, name))
                continue;
            double before_ns = handover_ns(cores), serial_ns = stable_ns(serial, NULL, how);
            double took_ns = stable_ns(schedules[i].fn, &chunk, how);
            print_row(name, took_ns - rounds * serial_ns, before_ns, handover_ns(cores));
        }
    return 0;
}
