/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * malleable.c - a fixed amount of work in one parallel region of some kind, for a measurement in
 * which cores come and go meanwhile.  Plain OpenMP: it knows nothing of that.
 *
 *   tasks     one thread makes a task for each item
 *   dynamic   a dynamic loop
 *   static    a static loop
 *   barriers  50 static loops with a barrier behind each, in one region
 *
 * malleable --items=N [--steps=S] [--start-fd=FD] kernel
 *     one byte is written to FD when the region begins; prints the seconds that it took
 * malleable --calibrate
 *     prints the steps per second of a core while the others are busy too
 */
#include "measure.h"

#include <unistd.h>

enum { PHASES = 50, TRIALS = 15 };

static long items;
static int steps;

static uint64_t item(long i)
{
    return work((uint64_t)i, steps);
}

static uint64_t run_tasks(void)
{
    uint64_t sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
    for (long i = 0; i < items; i++) {
#pragma omp task in_reduction(+ : sum)
        sum += item(i);
    }
    return sum;
}

static uint64_t run_dynamic(void)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (long i = 0; i < items; i++)
        sum += item(i);
    return sum;
}

static uint64_t run_static(void)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < items; i++)
        sum += item(i);
    return sum;
}

static uint64_t run_barriers(void)
{
    uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
    for (int p = 0; p < PHASES; p++) {
        long first = items * p / PHASES, end = items * (p + 1) / PHASES;
#pragma omp for schedule(static)
        for (long i = first; i < end; i++)
            sum += item(i);
    }
    return sum;
}

static const struct kernel {
    const char *name;
    uint64_t (*run)(void);
} kernels[] = {{"tasks", run_tasks},
               {"dynamic", run_dynamic},
               {"static", run_static},
               {"barriers", run_barriers}};

/* The median of trials in which every thread does the same amount. */
static int calibrate(void)
{
    enum { TRIAL_STEPS = 20000000 };
    double ns[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        double start = now_ns();
#pragma omp parallel
        delay(TRIAL_STEPS);
        ns[i] = now_ns() - start;
    }
    printf("steps_per_second %.0f\n", TRIAL_STEPS / (1e-9 * median_of(ns, TRIALS)));
    return 0;
}

/* What all threads have computed. */
static double cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return 1e9 * (double)ts.tv_sec + (double)ts.tv_nsec;
}

static void say_start(int fd)
{
    if (fd > 0 && write(fd, "s", 1) != 1)
        perror("malleable: start");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--calibrate") == 0)
        return calibrate();
    items = (long)option(argc, argv, "--items", 1000);
    steps = (int)option(argc, argv, "--steps", 20000);
    int fd = (int)option(argc, argv, "--start-fd", 0);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (!chosen(argc, argv, kernels[i].name))
            continue;
        warm_up(50); /* joins the domain */
        say_start(fd);
        double start = now_ns(), cpu_start = cpu_ns();
        uint64_t sum = kernels[i].run();
        printf("seconds %.6f\ncpu_seconds %.6f\nchecksum %016lx\n", 1e-9 * (now_ns() - start),
               1e-9 * (cpu_ns() - cpu_start), (unsigned long)sum);
    }
    return 0;
}
