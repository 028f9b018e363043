/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * wait_policy.c - what a thread does while it waits at a barrier.
 * @helper run by test_omp_wait_policy.py
 *
 * In each round thread 1 waits at a barrier, and thread 0 comes there only when thread 1 has fallen
 * asleep or has burnt LONG_US of processor time.  Prints a line for each round, of thread 1's wait:
 * its processor time in us, how often it slept (voluntary context switches; yields are none), and
 * how often others took its core.
 */
#define _GNU_SOURCE
#include "check.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 30, LONG_US = 30000, LOOK_US = 1000 };

static struct {
    clockid_t clock;
    int tid;
    long before_us;
    _Atomic int round; /* of the wait that begins; release: what is above is of that round */
} waiter;

static long clock_us(clockid_t clock)
{
    struct timespec ts;
    CHECK(clock_gettime(clock, &ts) == 0, "no clock of a thread");
    return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int sleeps(int tid)
{
    char path[64], text[400];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    CHECK(file, "no %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *end = strrchr(text, ')');
    return end && end[2] == 'S';
}

/* Thread 0: stay away for as long as thread 1 waits awake. */
static void keep_waiting(int round)
{
    while (atomic_load_explicit(&waiter.round, memory_order_acquire) < round)
        usleep(LOOK_US);
    do
        usleep(LOOK_US);
    while (!sleeps(waiter.tid) && clock_us(waiter.clock) - waiter.before_us < LONG_US);
}

static struct rusage own_usage(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

static void announce(int round)
{
    pthread_getcpuclockid(pthread_self(), &waiter.clock);
    waiter.tid = (int)syscall(SYS_gettid);
    waiter.before_us = clock_us(CLOCK_THREAD_CPUTIME_ID);
    atomic_store_explicit(&waiter.round, round, memory_order_release);
}

int main(void)
{
    omp_set_dynamic(0);
#pragma omp parallel num_threads(2)
    for (int round = 1; round <= ROUNDS; round++) {
        if (omp_get_thread_num() == 0) {
            keep_waiting(round);
#pragma omp barrier
        } else {
            announce(round);
            struct rusage before = own_usage(), after;
#pragma omp barrier
            after = own_usage();
            printf("%ld %ld %ld\n", clock_us(CLOCK_THREAD_CPUTIME_ID) - waiter.before_us,
                   after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw);
        }
#pragma omp barrier
    }
    return 0;
}
