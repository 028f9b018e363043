/* SPDX-License-Identifier: GPL-3.0-or-later */
/* strangers.c - regions beside a thread of the program that computes for a while, as the threads of
 * libraries do.  Prints how many CPUs the kernel lets the initial thread use: after regions without such
 * a thread, beside one, and some time after it has ended. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int stop;

static void *compute(void *unused)
{
    while (!atomic_load(&stop))
        ;
    return unused;
}

/* With both processors taken by bound threads it takes little of one. */
static void *yields(void *unused)
{
    while (!atomic_load(&stop))
        sched_yield();
    return unused;
}

/* Set where it has waited for a processor for some milliseconds at once, as on a busy machine: then it
 * looks like a thread that wants to compute. */
static _Atomic int late;

static void *sleeps(void *unused)
{
    while (!atomic_load(&stop)) {
        double begin = omp_get_wtime();
        usleep(1000);
        if (omp_get_wtime() - begin > 5e-3)
            atomic_store(&late, 1);
    }
    return unused;
}

/* Not by the C library's function: that one shows what the program has been given. */
static int cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 ? CPU_COUNT(&set) : -1;
}

/* Short regions, until the initial thread has so many CPUs, or for `seconds`. */
static int regions(double seconds, int wanted)
{
    const double end = omp_get_wtime() + seconds;
    int found;
    do {
#pragma omp parallel num_threads(2)
        for (double until = omp_get_wtime() + 1e-4; omp_get_wtime() < until;)
            ;
        found = cpus();
    } while (omp_get_wtime() < end && found != wanted);
    return found;
}

/* The same in one region. */
static int one_region(double seconds, int wanted)
{
    const double end = omp_get_wtime() + seconds;
    _Atomic int found = -1;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            while (omp_get_wtime() < end && atomic_load(&found) != wanted)
                atomic_store(&found, cpus());
        while (omp_get_wtime() < end && atomic_load(&found) != wanted)
            ;
    }
    return found;
}

static int beside(void *(*function)(void *), int (*work)(double, int), double seconds, int wanted)
{
    pthread_t thread;
    atomic_store(&stop, 0);
    pthread_create(&thread, NULL, function, NULL);
    int found = work(seconds, wanted);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    return found;
}

int main(void)
{
    printf("alone %d\n", regions(0.1, 1));
    int found = beside(sleeps, regions, 0.3, 2);
    printf("beside one that sleeps %d\n", late ? 1 : found);
    printf("beside one that computes %d\n", beside(compute, regions, 20, 2));
    printf("between them %d\n", regions(20, 1));
    printf("beside one that yields %d\n", beside(yields, regions, 20, 2));
    printf("between them %d\n", regions(20, 1));
    printf("beside one that yields, in one region %d\n", beside(yields, one_region, 20, 2));
    printf("afterwards %d\n", regions(20, 1));
    return 0;
}
