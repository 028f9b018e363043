/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pull.c CPU - regions of two threads beside a program that computes on this CPU, one of their two.
 * Prints how often a thread that was there had moved to the other one when its part was done, until
 * that has been seen ENOUGH times; and, after the program has ended, for how many regions in sequence
 * each thread began on a CPU of its own, until there are SETTLED. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REGIONS = 1000, ENOUGH = 5, SETTLED = 10 };

static int shared_cpu;

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static pid_t start_co_runner(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(shared_cpu, &set);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_setaffinity(0, sizeof set, &set);
    for (;;)
        ;
}

/* begins, ends: the CPU of each thread then, begins after a millisecond on it. */
static void region(int begins[2], int ends[2])
{
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
        const double begin = cpu_seconds();
        while (cpu_seconds() < begin + 1e-3)
            ;
        begins[me] = sched_getcpu();
        while (cpu_seconds() < begin + 20e-3)
            ;
        ends[me] = sched_getcpu();
    }
}

int main(int argc, char **argv)
{
    int begins[2], ends[2], pulled = 0, settled = 0;
    shared_cpu = argc > 1 ? atoi(argv[1]) : 1;
    region(begins, ends); /* the runtime starts before there is a child */
    pid_t child = start_co_runner();
    for (int i = 0; i < REGIONS && pulled < ENOUGH; i++) {
        region(begins, ends);
        for (int t = 0; t < 2; t++)
            pulled += begins[t] == shared_cpu && ends[t] != shared_cpu;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < REGIONS && settled < SETTLED; i++) {
        region(begins, ends);
        settled = begins[0] != begins[1] ? settled + 1 : 0;
    }
    printf("pulled %d, settled %d\n", pulled, settled);
    return 0;
}
