/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * wait_policy.c - what a thread does while it waits at a barrier.
 * @helper run by test_wait_policy.py
 *
 * In each round thread 1 waits at a barrier, and thread 0 comes there only when the kernel thread that
 * thread 1 was on has fallen asleep or has burnt LONG_US of processor time.  Prints a line for each
 * round, of what that kernel thread did until then: its processor time in us, how often it slept
 * (voluntary context switches; yields are none), and how often others took its core.  (Thread 1 may
 * go on on another one.)
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 30, LONG_US = 30000, LOOK_US = 1000 };

static struct {
    clockid_t clock;
    int tid;
    long before_us, slept, interrupted;
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

/* The number on the line of the kernel thread's status that begins so. */
static long count_of(int tid, const char *line)
{
    char path[64], text[400];
    long count = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "r");
    CHECK(file, "no %s", path);
    while (fgets(text, sizeof text, file))
        if (strncmp(text, line, strlen(line)) == 0)
            count = strtol(text + strlen(line), NULL, 10);
    fclose(file);
    CHECK(count >= 0, "no line %s", line);
    return count;
}

static const char SLEPT[] = "voluntary_ctxt_switches:", INTERRUPTED[] = "nonvoluntary_ctxt_switches:";

static void announce(int round)
{
    pthread_getcpuclockid(pthread_self(), &waiter.clock);
    waiter.tid = (int)syscall(SYS_gettid);
    waiter.slept = count_of(waiter.tid, SLEPT);
    waiter.interrupted = count_of(waiter.tid, INTERRUPTED);
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
            printf("%ld %ld %ld\n", clock_us(waiter.clock) - waiter.before_us,
                   count_of(waiter.tid, SLEPT) - waiter.slept,
                   count_of(waiter.tid, INTERRUPTED) - waiter.interrupted);
        } else
            announce(round);
#pragma omp barrier
    }
    return 0;
}
