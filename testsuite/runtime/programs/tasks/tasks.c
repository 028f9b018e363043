/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Explicit tasks: all run, taskwait and taskgroup wait for what they must, dependences order,
 * taskloops cover their iterations, detached tasks end when fulfilled, reductions add up; in teams
 * of 1 to 16.
 */
#include "../check.h"
#include "../fibonacci.h"
#include <omp.h>
#include <pthread.h>

static void recursion(int n)
{
    int result = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    result = fibonacci(15, 6);
    CHECK(result == 610, "fibonacci: %d", result);
}

static void from_all(int n)
{
    int ran = 0;
#pragma omp parallel num_threads(n)
    {
        for (int i = 0; i < 200; i++) {
#pragma omp task
            {
#pragma omp atomic
                ran++;
            }
        }
#pragma omp barrier
        int now;
#pragma omp atomic read
        now = ran;
        CHECK(now == 200 * n, "%d of %d tasks ran before the barrier", now, 200 * n);
#pragma omp barrier
#pragma omp task
        {
#pragma omp atomic
            ran++;
        }
    }
    CHECK(ran == 201 * n, "%d of %d tasks ran before the end of the region", ran, 201 * n);
}

/* Short regions whose last threads are still looking for tasks when the master comes to the end. */
static void at_the_end(int n)
{
    int ran = 0;
    for (int i = 0; i < 300; i++) {
#pragma omp parallel num_threads(n)
        {
#pragma omp single nowait
            for (int k = 0; k < i % 4; k++) {
#pragma omp task
                {
#pragma omp atomic
                    ran++;
                }
            }
        }
    }
    CHECK(ran == 450, "%d of 450 tasks ran", ran);
}

static void groups(int n)
{
    int deep = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp taskgroup
        {
            for (int i = 0; i < 20; i++) {
#pragma omp task
                {
                    for (int j = 0; j < 5; j++) {
#pragma omp task
                        {
#pragma omp atomic
                            deep++;
                        }
                    }
                }
            }
        }
        CHECK(deep == 100, "taskgroup did not wait for grandchildren: %d", deep);
    }
}

static void dependences(int n)
{
    enum { LENGTH = 100 };
    int chain = 0, order_broken = 0, left = 0, right = 0, joined = 0, set = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        for (int i = 0; i < LENGTH; i++) {
#pragma omp task depend(inout : chain)
            {
                if (chain != i)
                    order_broken++;
                chain++;
            }
        }
#pragma omp task depend(out : left)
        left = 1;
#pragma omp task depend(out : right)
        right = 2;
#pragma omp task depend(in : left, right) depend(out : joined)
        joined = left + right;
        for (int i = 0; i < 10; i++) {
#pragma omp task depend(mutexinoutset : set)
            set++;
        }
#pragma omp taskwait depend(in : joined)
        CHECK(joined == 3, "taskwait depend: %d", joined);
#pragma omp task if (0) depend(in : chain)
        CHECK(chain == LENGTH, "undeferred task before its predecessors: %d", chain);
    }
    CHECK(!order_broken, "%d tasks of the chain ran out of order", order_broken);
    CHECK(set == 10, "mutexinoutset: %d", set);
}

static void loops(int n)
{
    enum { ITEMS = 500 };
    int hits[ITEMS] = {0};
    long sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < ITEMS; i++) {
#pragma omp atomic
            hits[i]++;
        }
#pragma omp taskloop num_tasks(13) reduction(+ : sum)
        for (int i = 0; i < ITEMS; i++)
            sum += i;
    }
    for (int i = 0; i < ITEMS; i++)
        CHECK(hits[i] == 1, "taskloop: iteration %d ran %d times", i, hits[i]);
    CHECK(sum == (long)ITEMS * (ITEMS - 1) / 2, "taskloop reduction: %ld", sum);
    sum = 0;
#pragma omp parallel num_threads(n) reduction(task, + : sum)
    {
#pragma omp task in_reduction(+ : sum)
        sum += 3;
#pragma omp task in_reduction(+ : sum)
        sum += 4;
    }
    CHECK(sum == 7L * n, "task reduction: %ld", sum);
}

static void *fulfil(void *event)
{
    omp_fulfill_event(*(omp_event_handle_t *)event);
    return NULL;
}

static void detached(int n)
{
    int after = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        omp_event_handle_t event;
        pthread_t outside;
        int x = 0;
#pragma omp task detach(event) depend(out : x) shared(x)
        x = 1;
        CHECK(pthread_create(&outside, NULL, fulfil, &event) == 0, "pthread_create");
#pragma omp task depend(in : x) shared(x)
        after = x;
#pragma omp taskwait
        CHECK(after == 1, "the successor of a detached task: %d", after);
        CHECK(pthread_join(outside, NULL) == 0, "pthread_join");
    }
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 16};
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            recursion(sizes[i]);
            from_all(sizes[i]);
            at_the_end(sizes[i]);
            groups(sizes[i]);
            dependences(sizes[i]);
            loops(sizes[i]);
            detached(sizes[i]);
        }
    return check_ok();
}
