/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_split_stress.c - the portions of a split loop (loop/split.h) under fire: threads claim
 * the chunks of one loop after another, for the number of milliseconds in argv[1].
 *
 * What it checks:
 *  - every chunk is claimed once.  The marks are not atomic, so that ThreadSanitizer reports two
 *    threads that claim the same one;
 *  - no thread is needed: in each loop some come late or never, and some are held up in the
 *    middle, as implicit tasks are whose cores go; the others claim everything;
 *  - several threads may have the same own portion, and a portion may be no thread's.
 */
#include "loop/split.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, MAX_PORTIONS = 5, MAX_CHUNKS = 300 };

static struct gomp_portion portions[MAX_PORTIONS];
static unsigned nportions, nchunks;
static unsigned char marks[MAX_CHUNKS];
static pthread_barrier_t meet;
static bool over; /* written between two barriers */
static _Atomic unsigned long thefts, absent;

static _Noreturn void fail(const char *what, unsigned chunk)
{
    fprintf(stderr, "split: %s (chunk %u of %u, %u portions)\n", what, chunk, nchunks, nportions);
    abort();
}

static void hold_up(unsigned yields)
{
    for (; yields > 0; yields--)
        sched_yield();
}

/* One thread's part of one loop. */
static void claim(unsigned own, unsigned *seed)
{
    uint32_t chunk;
    hold_up((unsigned)rand_r(seed) % 4);
    for (;;) {
        if (!gomp_split_own(&portions[own], &chunk)) {
            if (!gomp_split_steal(portions, nportions, own, &chunk))
                return;
            thefts++;
        }
        if (chunk >= nchunks)
            fail("no such chunk", chunk);
        if (marks[chunk]++)
            fail("claimed twice", chunk);
        if ((unsigned)rand_r(seed) % 64 == 0)
            hold_up(2);
    }
}

static void begin_loop(unsigned *seed)
{
    nportions = 1 + (unsigned)rand_r(seed) % MAX_PORTIONS;
    nchunks = (unsigned)rand_r(seed) % MAX_CHUNKS;
    memset(marks, 0, sizeof marks);
    gomp_split_init(portions, nportions, nchunks);
}

static void check_loop(void)
{
    for (unsigned i = 0; i < nchunks; i++)
        if (marks[i] != 1)
            fail("not claimed", i);
}

static void *thread_main(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg, seed = me + 1;
    for (;;) {
        pthread_barrier_wait(&meet);
        if (over)
            return NULL;
        if (me == 0 || (unsigned)rand_r(&seed) % 4)
            claim((unsigned)rand_r(&seed) % nportions, &seed);
        else
            absent++;
        pthread_barrier_wait(&meet);
    }
}

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    double end_ms = now_ms() + (argc > 1 ? atof(argv[1]) : 2000);
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    unsigned long loops = 0;
    pthread_t threads[THREADS];
    pthread_barrier_init(&meet, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread_main, (void *)i) != 0)
            fail("no thread", 0);
    for (; now_ms() < end_ms; loops++) {
        begin_loop(&seed);
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
        check_loop();
    }
    over = true;
    pthread_barrier_wait(&meet);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("split: %lu loops, %lu thefts, %lu threads absent\n", loops, thefts, absent);
    return loops == 0 || thefts == 0 || absent == 0;
}
