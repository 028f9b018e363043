/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * measure.h - what the programs of this directory share: the clock, work of a fixed length, a
 * sample that is repeated until its median is stable, and options.
 *
 * The programs are plain OpenMP, compiled once, and run with one OpenMP runtime after the other.
 * They print lines "name number", check their own results, and exit with 1 when one is wrong.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return 1e9 * (double)ts.tv_sec + (double)ts.tv_nsec;
}

/* Work that takes as many times four cycles as it has steps: each depends on the one before. */
static inline uint64_t work(uint64_t x, int steps)
{
    for (int i = 0; i < steps; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return x;
}

/* The same for its time only. */
static inline void delay(int steps)
{
    uint64_t x = work((uint64_t)steps, steps);
    __asm__ volatile("" ::"r"(x));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* How samples are taken. */
struct sampling {
    double sample_ns; /* at least as long as this */
    double budget_ns; /* no further sample after this time, once there are a few */
};

/* One sample: does `repeats` times what is measured, with `what` as it pleases. */
typedef void (*sample_fn)(long repeats, const void *what);

static inline double timed(sample_fn fn, long repeats, const void *what)
{
    double start = now_ns();
    fn(repeats, what);
    return now_ns() - start;
}

/* Nanoseconds per repeat: the median of samples, which are taken until the middle half of
 * them is within 4 % or the time is over. */
static inline double stable_ns(sample_fn fn, const void *what, struct sampling how)
{
    enum { FEW = 5, ENOUGH = 11, MOST = 99 };
    double start = now_ns(), t, values[MOST];
    long repeats = 4;
    timed(fn, 2, what); /* makes the threads */
    while ((t = timed(fn, repeats, what)) < how.sample_ns && now_ns() - start < how.budget_ns)
        repeats = t < how.sample_ns / 16 ? repeats * 8 : repeats * 2;
    start = now_ns();
    for (int n = 0;;) {
        values[n++] = timed(fn, repeats, what) / (double)repeats;
        double median = median_of(values, n);
        bool stable = n >= ENOUGH && values[n * 3 / 4] - values[n / 4] < 0.04 * median;
        if (stable || n == MOST || (n >= FEW && now_ns() - start > how.budget_ns))
            return median;
    }
}

/* Regions for a while, so that the kernel has spread the threads over the cores. */
static inline void warm_up(double ms)
{
    for (double start = now_ns(); now_ns() - start < 1e6 * ms;) {
#pragma omp parallel
        delay(64);
    }
}

/* A cache line that two threads give to each other. */
struct handover {
    _Alignas(64) _Atomic int turn, given_up; /* after so many; 0: not */
};

/* My turns.  Where both threads have come to one core, beside others, each takes a slice of
 * milliseconds.  A thread whose loop lasts longer than `patience_ns` makes both give up. */
static inline void hand_over(struct handover *h, int rounds, double patience_ns)
{
    enum { LONG = 1 << 16 };
    double start = now_ns();
    for (int r = omp_get_thread_num(); r < 2 * rounds && !h->given_up; r += 2) {
        for (int spins = 1; h->turn != r && !h->given_up; spins++)
            if (spins % LONG == 0 && now_ns() - start > patience_ns)
                h->given_up = r + 1;
        h->turn = r + 1;
    }
}

/* How long a cache line takes from one of two threads to the other, in nanoseconds.  On a virtual
 * machine it changes fivefold when the host moves a processor, and most constructs with it.
 * 0 when there are not just two threads, and a core for each. */
static inline double handover_ns(int cores)
{
    enum { ROUNDS = 1000, TRIALS = 5 };
    static struct handover h;
    double ns[TRIALS];
    if (cores < 2 || omp_get_max_threads() != 2)
        return 0;
    for (int t = 0; t < TRIALS; t++) {
        h.turn = h.given_up = 0;
        double start = now_ns();
#pragma omp parallel
        hand_over(&h, ROUNDS, 2e7);
        ns[t] = (now_ns() - start) / (h.given_up ? h.given_up : 2 * ROUNDS);
    }
    return median_of(ns, TRIALS);
}

/* A row of the result: "NAME NUMBER", and behind it the greater of the times of a hand-over
 * before and after. */
static inline void print_row(const char *name, double value, double before_ns, double after_ns)
{
    printf("%s %.2f\n", name, value);
    if (before_ns > 0)
        printf("%s_handover %.1f\n", name, before_ns > after_ns ? before_ns : after_ns);
    fflush(stdout);
}

/* The number that argument "--name=NUMBER" gives, or `standard`. */
static inline double option(int argc, char **argv, const char *name, double standard)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++) {
        char *end;
        if (strncmp(argv[i], name, length) != 0 || argv[i][length] != '=')
            continue;
        double value = strtod(argv[i] + length + 1, &end);
        if (!*end && end != argv[i] + length + 1 && value >= 0)
            return value;
        fprintf(stderr, "%s: '%s' is not a number >= 0\n", argv[0], argv[i]);
        exit(2);
    }
    return standard;
}

/* Is `name` among the arguments that are no options, or are there none?  An argument that
 * ends in '*' stands for all that begin like it. */
static inline bool chosen(int argc, char **argv, const char *name)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        if (strncmp(argv[i], "--", 2) == 0)
            continue;
        any = true;
        if (strcmp(argv[i], name) == 0 ||
            (argv[i][length - 1] == '*' && strncmp(argv[i], name, length - 1) == 0))
            return true;
    }
    return !any;
}

static inline void demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "wrong result: %s\n", what);
    exit(1);
}

#endif
