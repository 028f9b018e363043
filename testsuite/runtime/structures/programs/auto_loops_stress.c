/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * auto_loops_stress.c - loops with OMP_SCHEDULE=auto under fire: two teams execute one loop after
 * another, for the number of milliseconds in argv[1] (default 2000).  A team has two kernel threads
 * and more thread numbers: a kernel thread takes a number, claims some chunks, and leaves the
 * number to the other one, as contexts move.  Both teams have loops at the same call sites.
 * Compiled with loop/loop_auto.c and loop_split.c.
 *
 * What it checks:
 *  - every iteration runs once, in loops of any bounds and steps, static ones and split ones.  The
 *    marks are not atomic, so that ThreadSanitizer reports two threads that run the same one;
 *  - the first values of a loop are seen by each of its threads;
 *  - a thread number gets no chunk after the loop's last one.
 */
#include "auto_loops.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEAMS = 2, THREADS = 2, MOST_NUMBERS = 6, MOST = 500, SITES = 5, HANG_S = 200 };

/* What a kernel thread may do with a thread number. */
enum state { WAITS, RUNS, OVER };

struct number {
    struct gomp_thread thread;
    _Atomic enum state state; /* WAITS to RUNS: acquire; from RUNS: release */
    bool has_last;            /* of the kernel thread that runs it */
};

/* The master's between two barriers; else the threads read it. */
struct shared {
    struct gomp_team team;
    struct gomp_work_share share;
    struct number number[MOST_NUMBERS];
    unsigned numbers;
    long start, end, incr, n;
    bool grows; /* the time of its iterations */
    bool done[MOST];
    bool over;
    pthread_barrier_t barrier;
};

static struct shared shared[TEAMS];
static _Atomic bool over;
static _Atomic unsigned long executions, splits;

static _Noreturn void fail (const char *what, long i)
{
    fprintf(stderr, "loops: %s (iteration %ld)\n", what, i);
    abort();
}

/* --- threads of a team */

static void run_chunk (struct shared *of, long i, long end)
{
    for (; of->incr > 0 ? i < end : i > end; i += of->incr) {
        long trip = (i - of->start) / of->incr;
        if (trip < 0 || trip >= of->n || of->done[trip])
            fail("runs again, or is none", trip);
        of->done[trip] = true;
        clock_ns += of->grows ? (uint64_t)trip * 100 : 1000;
    }
}

/* False: the thread number gets no more chunks. */
static bool run_number (struct shared *of, struct number *number, unsigned *seed)
{
    long i, end;
    gomp_current = &number->thread;
    for (unsigned chunks = 1 + (unsigned)rand_r(seed) % 8; chunks > 0; chunks--) {
        if (!runtime_next(&i, &end))
            return false;
        if (number->has_last)
            fail("comes after the last chunk", i);
        run_chunk(of, i, end);
        number->has_last = end == of->share.end;
        if ((unsigned)rand_r(seed) % 16 == 0)
            sched_yield();
    }
    return true;
}

/* Is there none that waits or runs? */
static bool all_are_over (struct shared *of)
{
    bool all = true;
    for (unsigned i = 0; i < of->numbers; i++)
        all = all && atomic_load_explicit(&of->number[i].state, memory_order_relaxed) == OVER;
    return all;
}

static void run_loop (struct shared *of, unsigned *seed)
{
    while (!all_are_over(of)) {
        struct number *number = &of->number[(unsigned)rand_r(seed) % of->numbers];
        enum state state = WAITS;
        if (atomic_compare_exchange_strong_explicit(&number->state, &state, RUNS,
                                                    memory_order_acquire, memory_order_relaxed))
            atomic_store_explicit(&number->state, run_number(of, number, seed) ? WAITS : OVER,
                                  memory_order_release);
        else
            sched_yield();
    }
}

static void *thread_main (void *arg)
{
    struct shared *of = arg;
    unsigned seed = (unsigned)(of - shared) + 7;
    inv_hold = INV_HOLD_NONE;
    clock_ns = 1;
    for (;;) {
        pthread_barrier_wait(&of->barrier);
        if (of->over)
            return NULL;
        run_loop(of, &seed);
        pthread_barrier_wait(&of->barrier);
    }
}

/* --- masters */

static void open_loop (struct shared *of, unsigned *seed)
{
    uintptr_t site = 1 + (uintptr_t)rand_r(seed) % SITES;
    of->numbers = of->team.nthreads = 1 + (unsigned)rand_r(seed) % MOST_NUMBERS;
    of->n = (unsigned)rand_r(seed) % (MOST + 1);
    of->incr = (1 + rand_r(seed) % 9) * (rand_r(seed) % 2 ? 1 : -1);
    of->start = rand_r(seed) % 1000 - 500;
    of->end = of->start + of->n * of->incr;
    of->grows = site > 1 && (site > 2 || rand_r(seed) % 64 == 0);
    memset(of->done, 0, sizeof of->done);
    memset(&of->share, 0, sizeof of->share);
    for (unsigned i = 0; i < of->numbers; i++) {
        of->number[i].thread.ts = (struct gomp_team_state){
            .team = &of->team, .team_id = i, .work_share = &of->share, .static_trip = 0};
        of->number[i].has_last = false;
        atomic_store_explicit(&of->number[i].state, WAITS, memory_order_relaxed);
    }
    gomp_current = &of->number[0].thread;
    init_runtime(&of->share, of->start, of->end, of->incr, &of->team, (const void *)site);
}

static void close_loop (struct shared *of)
{
    for (long i = 0; i < of->n; i++)
        if (!of->done[i])
            fail("has not run", i);
    atomic_fetch_add_explicit(&executions, 1, memory_order_relaxed);
    if (of->share.mode & LOOP_SPLIT)
        atomic_fetch_add_explicit(&splits, 1, memory_order_relaxed);
    free(of->share.ordered_team_ids);
}

static void *master_main (void *arg)
{
    struct shared *of = arg;
    unsigned seed = (unsigned)(of - shared) + 77;
    inv_hold = INV_HOLD_NONE;
    clock_ns = 1;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        open_loop(of, &seed);
        pthread_barrier_wait(&of->barrier);
        run_loop(of, &seed);
        pthread_barrier_wait(&of->barrier);
        close_loop(of);
    }
    of->over = true;
    pthread_barrier_wait(&of->barrier);
    return NULL;
}

int main (int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 2000;
    pthread_t thread[TEAMS * THREADS];
    gomp_available_cpus = 4;
    alarm(HANG_S);
    for (unsigned i = 0; i < TEAMS * THREADS; i++) {
        struct shared *of = &shared[i / THREADS];
        bool is_master = i % THREADS == 0;
        if (is_master)
            pthread_barrier_init(&of->barrier, NULL, THREADS);
        if (pthread_create(&thread[i], NULL, is_master ? master_main : thread_main, of) != 0)
            fail("no thread", 0);
    }
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    do /* the process may have been stopped meanwhile */
        nanosleep(&time, NULL);
    while (splits == 0 || splits == executions);
    atomic_store_explicit(&over, true, memory_order_relaxed);
    for (unsigned i = 0; i < TEAMS * THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("loops: executed %lu times, %lu split\n", executions, splits);
    return 0;
}
