/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tasks with a priority run before those with a lower one, each runs once, and a task that waits
 * runs none but its descendants, whatever their priority.
 *
 * @mends the stock library crashes where tasks with priorities wait for such children
 * @env OMP_MAX_TASK_PRIORITY=1000000
 * @changing
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { FEW = 60, MANY = 20000, DEEP = 9 };

static int ran[FEW], count;

/* The priority of the i-th task of `ordered`: in no order, some equal, some far apart. */
static int nth_priority(int i, int scale)
{
    return (i * 37 % 23 + 1) * scale;
}

/* A team of one thread runs what it has queued in the order of priorities. */
static void ordered(int scale)
{
    count = 0;
#pragma omp parallel num_threads(1)
    {
        for (int i = 0; i < FEW; i++) {
#pragma omp task priority(nth_priority(i, scale)) firstprivate(i)
            ran[count++] = nth_priority(i, scale);
        }
#pragma omp taskwait
    }
    CHECK(count == FEW, "%d of %d tasks", count, FEW);
    for (int i = 1; i < FEW; i++)
        CHECK(ran[i - 1] >= ran[i], "priority %d after %d", ran[i], ran[i - 1]);
}

/* A task without a priority comes after those that were queued before it, also at once. */
static void before_the_rest(void)
{
    static int before, after;
#pragma omp parallel num_threads(1)
    {
#pragma omp task priority(1)
        before++;
#pragma omp task
        after = before;
#pragma omp taskwait
    }
    CHECK(after == 1, "a task without a priority ran before one with a priority");
}

/* More than any queue holds, of all kinds, by all threads. */
static void each_once(int n)
{
    static unsigned char hits[MANY];
    memset(hits, 0, sizeof hits);
#pragma omp parallel num_threads(n)
#pragma omp for
    for (int i = 0; i < MANY; i++) {
#pragma omp task priority(i % 3 * (i % 7 * 1000)) firstprivate(i)
        __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(hits[i] == 1, "task %d ran %d times", i, hits[i]);
}

/* All are queued by one thread, which runs some itself when there are too many. */
static void by_one(int n)
{
    long sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
#pragma omp taskgroup
    for (int i = 0; i < MANY; i++) {
#pragma omp task priority(1 + i / 5000) shared(sum) firstprivate(i) untied
#pragma omp atomic
        sum += i;
    }
    CHECK(sum == (long)MANY * (MANY - 1) / 2, "sum %ld", sum);
}

static long tree(int depth)
{
    long sum = 1;
    if (depth == 0)
        return 1;
    for (int i = 0; i < 3; i++) {
#pragma omp task priority(i % 2 * depth) shared(sum) final(depth < 3)
        {
            long part = tree(depth - 1);
#pragma omp atomic
            sum += part;
        }
    }
#pragma omp taskwait
    return sum;
}

static void nested(int n)
{
    long sum = 0, expected = 0;
    for (int i = 0; i <= DEEP; i++)
        expected = 3 * expected + 1;
#pragma omp parallel num_threads(n)
#pragma omp single
    sum = tree(DEEP);
    CHECK(sum == expected, "tree: %ld of %ld", sum, expected);
}

/* A lock that a waiting task holds is never waited for by a task that runs within its wait. */
static void only_descendants(int n)
{
    static omp_lock_t lock;
    int done = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 40; i++) {
#pragma omp task priority(i) shared(done)
        {
            omp_set_lock(&lock);
            for (int k = 0; k < 6; k++) {
#pragma omp task priority(k)
                for (volatile int p = 0; p < 300; p++)
                    ;
            }
#pragma omp taskwait
            omp_unset_lock(&lock);
#pragma omp atomic
            done++;
        }
    }
    CHECK(done == 40, "%d tasks held the lock", done);
    omp_destroy_lock(&lock);
}

static void *fulfil(void *event)
{
    omp_fulfill_event(*(omp_event_handle_t *)event);
    return NULL;
}

/* Dependences, undeferred tasks, taskloops, and events that other threads fulfil. */
static void with_other_clauses(int n)
{
    enum { CHAIN = 200 };
    int x = 0, hits[100] = {0};
    omp_event_handle_t event;
    pthread_t outside;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        for (int i = 0; i < CHAIN; i++) {
#pragma omp task priority(i) depend(inout : x) shared(x) firstprivate(i)
            {
                CHECK(x == i, "link %d at %d", i, x);
                x++;
            }
        }
#pragma omp task priority(7) detach(event) depend(inout : x) shared(x)
        x++;
        for (int i = 0; i < CHAIN; i++) {
#pragma omp task priority(i % 2) depend(in : x) shared(x)
            CHECK(x == CHAIN + 1, "before the event: %d", x);
        }
        CHECK(pthread_create(&outside, NULL, fulfil, &event) == 0, "pthread_create");
#pragma omp taskwait
        CHECK(pthread_join(outside, NULL) == 0, "pthread_join");
#pragma omp task priority(9) if (0) shared(x)
        x = -1;
        CHECK(x == -1, "an undeferred task was deferred");
#pragma omp taskloop priority(3) grainsize(1)
        for (int i = 0; i < 100; i++)
            __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < 100; i++)
        CHECK(hits[i] == 1, "iteration %d ran %d times", i, hits[i]);
}

/* Tasks that are in a queue when their group is cancelled are not started, and nothing hangs. */
static void cancelled(int n)
{
    int started = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
#pragma omp taskgroup
    for (int i = 0; i < 500; i++) {
#pragma omp task priority(i % 4) shared(started)
        {
            __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
#pragma omp cancel taskgroup
        }
    }
    CHECK(started > 0 && started <= 500, "%d started", started);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 16}, scales[] = {1, 2, 40000};
    CHECK(omp_get_max_task_priority() == 1000000, "maximum %d", omp_get_max_task_priority());
    for (int i = 0; i < 3; i++)
        ordered(scales[i]);
    before_the_rest();
    for (int i = 0; i < 4; i++) {
        each_once(sizes[i]);
        by_one(sizes[i]);
        nested(sizes[i]);
        only_descendants(sizes[i]);
        with_other_clauses(sizes[i]);
        cancelled(sizes[i]);
    }
    return check_ok();
}
