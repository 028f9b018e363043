/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * spinsync.c - threads of a region that synchronise by hand: each waits in a loop of its own for a
 * flag that another sets.  No runtime sees that; one that ran implicit tasks one after the
 * other would hang.  Prints the milliseconds of each kernel: the mean of several runs without the
 * first.
 *
 *   pingpong  two threads hand a number to and fro
 *   pipeline  thread i does step s when thread i-1 has done it; each step is some 2 us of work
 *   meet      regions in each of which all threads meet three times at a counter
 *   yield     the same, where a thread that waits calls sched_yield, by another function
 *
 * spinsync [--rounds=N] [--warm-up-ms=T] [kernel ...]
 */
#include "measure.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

enum { LINE = 64, MAX_THREADS = 64, STEP_STEPS = 2000, LEAD = 8, MEETINGS = 3, TRIALS = 5 };

static struct {
    _Alignas(LINE) _Atomic long done;
} flags[MAX_THREADS];

static long rounds;

/* acquire: partner is the release store of the thread that sets the flag. */
static void await(int thread, long value)
{
    while (atomic_load_explicit(&flags[thread].done, memory_order_acquire) < value)
        ;
}

static void set(int thread, long value)
{
    atomic_store_explicit(&flags[thread].done, value, memory_order_release);
}

static void clear(void)
{
    for (int i = 0; i < MAX_THREADS; i++)
        set(i, 0);
}

static void pingpong(void)
{
    long sum = 0; /* not atomic: the flags order the two threads' additions */
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
        for (long r = 1; r <= rounds; r++) {
            await(1 - me, me == 0 ? r - 1 : r);
            sum += r;
            set(me, r);
        }
    }
    demand(sum == rounds * (rounds + 1), "pingpong");
}

/* No thread is more than LEAD steps ahead of the next one, so that all have to run. */
static void pipeline(void)
{
    uint64_t x[MAX_THREADS] = {0};
    int last = omp_get_max_threads() - 1;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        for (long s = 1; s <= rounds; s++) {
            if (me > 0)
                await(me - 1, s);
            if (me < last)
                await(me + 1, s - LEAD);
            x[me] = work(x[me], STEP_STEPS);
            set(me, s);
        }
    }
    demand(atomic_load(&flags[last].done) == rounds && x[last] == x[0], "pipeline");
}

static inline void meet_by(void (*wait)(void))
{
    long regions = rounds / 10 + 1, wrong = 0;
    for (long r = 0; r < regions; r++) {
        _Atomic long arrived = 0;
#pragma omp parallel reduction(+ : wrong)
        {
            long all = omp_get_num_threads();
            for (long m = 1; m <= MEETINGS; m++) {
                atomic_fetch_add(&arrived, 1);
                while (atomic_load(&arrived) < m * all)
                    if (wait)
                        wait();
            }
            wrong += atomic_load(&arrived) != MEETINGS * all;
        }
    }
    demand(wrong == 0, "meet");
}

static void meet(void) { meet_by(NULL); }

static __attribute__((noinline)) void give_way(void) { sched_yield(); }

static void yield(void) { meet_by(give_way); }

/* The mean of TRIALS after a first one.  (A median would hide what goes wrong in one of them.) */
static double milliseconds(void (*run)(void))
{
    double ns = 0;
    for (int i = -1; i < TRIALS; i++) {
        clear();
        double start = now_ns();
        run();
        if (i >= 0)
            ns += now_ns() - start;
    }
    return 1e-6 * ns / TRIALS;
}

static const struct kernel {
    const char *name;
    void (*run)(void);
} kernels[] = {{"pingpong", pingpong}, {"pipeline", pipeline}, {"meet", meet}, {"yield", yield}};

int main(int argc, char **argv)
{
    rounds = (long)option(argc, argv, "--rounds", 1000);
    if (omp_get_max_threads() > MAX_THREADS) {
        fprintf(stderr, "spinsync: at most %d threads\n", MAX_THREADS);
        return 2;
    }
    warm_up(option(argc, argv, "--warm-up-ms", 50));
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (!chosen(argc, argv, kernels[i].name))
            continue;
        printf("%s %.3f\n", kernels[i].name, milliseconds(kernels[i].run));
        fflush(stdout);
    }
    return 0;
}
