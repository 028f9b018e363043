/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * crowd.c - a program that synchronises often, on a machine that is full of other programs.
 * Prints the milliseconds of each kernel.
 *
 *   barriers  one region: some 20 us of work in each thread and a barrier, again and again
 *   regions   the same work in a region of its own each time
 *
 * crowd [--rounds=N] [--warm-up-ms=T] [kernel ...]
 * crowd --burn=S     is one of the other programs: computes for S seconds, or until its parent ends
 */
#include "measure.h"

#include <omp.h>
#include <unistd.h>

enum { STEPS = 19000, TRIALS = 3 };

static void barriers(long rounds)
{
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    for (long r = 0; r < rounds; r++) {
        delay(STEPS);
        sum++;
#pragma omp barrier
    }
    demand(sum == rounds * omp_get_max_threads(), "barriers");
}

static void regions(long rounds)
{
    long sum = 0;
    for (long r = 0; r < rounds; r++) {
#pragma omp parallel reduction(+ : sum)
        {
            delay(STEPS);
            sum++;
        }
    }
    demand(sum == rounds * omp_get_max_threads(), "regions");
}

static const struct kernel {
    const char *name;
    void (*run)(long rounds);
} kernels[] = {{"barriers", barriers}, {"regions", regions}};

/* The median of TRIALS. */
static double milliseconds(void (*run)(long), long rounds)
{
    double ns[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        double start = now_ns();
        run(rounds);
        ns[i] = now_ns() - start;
    }
    return 1e-6 * median_of(ns, TRIALS);
}

static int burn(double seconds)
{
    pid_t parent = getppid();
    for (double start = now_ns(); now_ns() - start < 1e9 * seconds && getppid() == parent;)
        delay(1000000);
    return 0;
}

int main(int argc, char **argv)
{
    double seconds = option(argc, argv, "--burn", 0);
    if (seconds > 0)
        return burn(seconds);
    long rounds = (long)option(argc, argv, "--rounds", 100);
    warm_up(option(argc, argv, "--warm-up-ms", 50));
    double start = now_ns();
    for (long r = 0; r < 100; r++)
        delay(STEPS);
    printf("work_us %.3f\n", 1e-5 * (now_ns() - start));
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (!chosen(argc, argv, kernels[i].name))
            continue;
        printf("%s %.3f\n", kernels[i].name, milliseconds(kernels[i].run, rounds));
        fflush(stdout);
    }
    return 0;
}
