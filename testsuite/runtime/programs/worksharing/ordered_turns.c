/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ordered regions run one at a time, in the order of the iterations, whatever the threads do
 * meanwhile: teams from 1 to 128, short and long chunks by turns, threads that sleep before or in
 * the region, iterations that leave it out, tasks, locks and nested regions inside.  No
 * thread is kept from its first chunk: as many iterations as threads may be under way at once.
 * @each dynamic static guided runtime task meet
 */
#include "../check.h"
#include <omp.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long ull;

static long next, inside;

/* The body of every ordered region. */
static void turn(long i, const char *what)
{
    CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED) == 1, "%s: %ld is not alone", what, i);
    CHECK(next <= i, "%s: %ld after %ld", what, i, next);
    next = i + 1;
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
}

static void over(long n, const char *what)
{
    CHECK(next == n, "%s: the last one was %ld of %ld", what, next, n);
    next = 0;
}

static void compute(int steps)
{
    for (volatile int k = 0; k < steps; k++)
        ;
}

/* Long, short and sleeping iterations take turns, so that threads leave their cores and come
 * back: now in front of the region, now inside. */
static void before(long i)
{
    if (i % 97 == 13)
        usleep(200);
    compute(i % 11 == 3 ? 3000 : i % 200 < 100 ? 10 : 300);
}

static omp_lock_t lock;

static void within(long i, const char *what)
{
    turn(i, what);
    if (i % 89 == 7)
        usleep(100);
    if (i % 71 == 5) {
        int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
        sum++;
        CHECK(sum >= 1, "%s: nested region", what);
    }
    if (i % 31 == 9) {
        omp_set_lock(&lock);
        omp_unset_lock(&lock);
    }
    if (i % 53 == 4) {
        int done = 0;
#pragma omp task shared(done)
        done = 1;
#pragma omp taskwait
        CHECK(done == 1, "%s: task", what);
    }
}

static const int teams[] = {1, 2, 3, 4, 7, 9, 16, 33, 128};
enum { TEAMS = sizeof teams / sizeof teams[0] };

#define LOOP(T, N, BACKWARDS, ...)                                                                 \
    {                                                                                              \
        long n = N;                                                                                \
        _Pragma("omp parallel num_threads(team)")                                                  \
        {                                                                                          \
            if (BACKWARDS) {                                                                       \
                PRAGMA(omp for ordered __VA_ARGS__)                                                \
                for (T k = (T)(7 * n); k > 0; k -= 7) {                                            \
                    long i = n - (long)(k / 7);                                                    \
                    BODY(i, #T " backwards, " #__VA_ARGS__)                                        \
                }                                                                                  \
            } else {                                                                               \
                PRAGMA(omp for ordered __VA_ARGS__)                                                \
                for (T k = 5; k < (T)(5 + 3 * n); k += 3) {                                        \
                    long i = (long)((k - 5) / 3);                                                  \
                    BODY(i, #T ", " #__VA_ARGS__)                                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        over(n, #T ", " #__VA_ARGS__);                                                             \
    }
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define BODY(I, WHAT)                                                                              \
    before(I);                                                                                     \
    if ((I) % 7 != 2 || (I) == n - 1) {                                                            \
        _Pragma("omp ordered") within(I, WHAT);                                                    \
    }

/* Loops of one schedule follow each other: shorter and longer than the team. */
#define LOOPS(NAME, ...)                                                                           \
    static void NAME##_loops(void)                                                                 \
    {                                                                                              \
        static const long sizes[] = {1, 5, 150, 1500};                                             \
        for (int t = 0; t < TEAMS; t++)                                                            \
            for (int s = 0; s < (teams[t] > 16 ? 3 : 4); s++) {                                    \
                int team = teams[t], chunk = 1 + s % 2 * 2;                                        \
                omp_set_schedule(s % 2 ? omp_sched_dynamic : omp_sched_guided, chunk);             \
                LOOP(long, sizes[s], 0, __VA_ARGS__)                                               \
                LOOP(ull, sizes[s], 0, __VA_ARGS__)                                                \
                LOOP(long, sizes[s], 1, __VA_ARGS__)                                               \
                LOOP(ull, sizes[s], 1, __VA_ARGS__)                                                \
                (void)chunk;                                                                       \
            }                                                                                      \
    }

LOOPS(dynamic, schedule(dynamic, chunk))
LOOPS(static, schedule(static, chunk))
LOOPS(guided, schedule(guided, chunk))
LOOPS(runtime, schedule(runtime))

/* Loops with task reductions begin by another entry point. */
static void task_loops(void)
{
    for (int t = 0; t < TEAMS; t++) {
        int sum = 0;
#pragma omp parallel num_threads(teams[t])
#pragma omp for ordered schedule(dynamic, 2) reduction(task, + : sum)
        for (long i = 0; i < 200; i++) {
#pragma omp task in_reduction(+ : sum)
            sum++;
#pragma omp ordered
            turn(i, "task reduction");
        }
        over(200, "task reduction");
        CHECK(sum == 200, "task reduction: %d", sum);
    }
}

/* Every iteration waits until all have begun; then again a thousand short ones, in which the
 * threads learn that they are in each other's way, and that once more. */
static void meetings(void)
{
    for (int round = 0; round < 3; round++) {
        enum { N = 4 };
        int begun = 0;
#pragma omp parallel num_threads(N)
        {
#pragma omp for ordered schedule(dynamic, 1)
            for (long i = 0; i < N; i++) {
                __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
                while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < N)
                    usleep(50);
#pragma omp ordered
                turn(i, "meeting");
            }
#pragma omp single
            over(N, "meeting");
#pragma omp for ordered schedule(dynamic, 1)
            for (long i = 0; i < 1000; i++) {
#pragma omp ordered
                turn(i, "short");
            }
#pragma omp single
            over(1000, "short");
        }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"dynamic", dynamic_loops}, {"static", static_loops},
                 {"guided", guided_loops},   {"runtime", runtime_loops},
                 {"task", task_loops},       {"meet", meetings}};
    CHECK(argc == 2, "usage: %s CASE", argv[0]);
    omp_init_lock(&lock);
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    omp_destroy_lock(&lock);
    puts("OK");
    return 0;
}
