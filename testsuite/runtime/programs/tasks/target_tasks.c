/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Target regions without a device are tasks of the host: with `nowait` they keep the order of their
 * dependences among themselves and with other tasks, a taskwait, a taskgroup and the end of the
 * region wait for them, their firstprivate copies are those of the moment, and they may contain
 * regions and tasks.  So too in a team of one, outside of any region and in nested ones.
 *
 * @mends the stock library's threads sleep on at the barrier while readers are left
 * @changing
 */
#include "../check.h"
#include <omp.h>
#include <string.h>

enum { MANY = 200 };

static void pause_a_little(void)
{
    for (volatile int i = 0; i < 300; i++)
        ;
}

/* Tasks and target tasks in one chain of dependences, some of them undeferred. */
static void chain(int n)
{
    int x = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < MANY; i++) {
        switch (i % 4) {
        case 0:
#pragma omp target nowait depend(inout : x) map(tofrom : x) firstprivate(i)
            x = x == i ? i + 1 : -1;
            break;
        case 1:
#pragma omp task depend(inout : x) shared(x) firstprivate(i)
            x = x == i ? i + 1 : -1;
            break;
        case 2:
#pragma omp target depend(inout : x) map(tofrom : x) firstprivate(i)
            x = x == i ? i + 1 : -1;
            CHECK(x == i + 1, "a target region that is waited for: %d after %d", x, i);
            break;
        default:
#pragma omp target nowait depend(mutexinoutset : x) map(tofrom : x) firstprivate(i)
            x = x == i ? i + 1 : -1;
        }
    }
    CHECK(x == MANY, "chain of %d threads: %d of %d", n, x, MANY);
}

/* Many may run between a writer and the next one. */
static void readers(int n)
{
    int value = 0, seen = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int round = 1; round <= 20; round++) {
#pragma omp target nowait depend(out : value) map(tofrom : value) firstprivate(round)
        {
            pause_a_little();
            value = round;
        }
        for (int i = 0; i < 8; i++) {
#pragma omp target nowait depend(in : value) map(to : value) map(tofrom : seen) firstprivate(round)
            {
                CHECK(value == round, "a reader saw %d in round %d", value, round);
#pragma omp atomic
                seen++;
            }
        }
    }
    CHECK(seen == 160, "%d of 160 readers", seen);
}

/* Data constructs take part in the order too. */
static void data(int n)
{
    int a[100], order = 0;
    memset(a, 0, sizeof a);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int round = 0; round < 20; round++) {
#pragma omp task depend(out : a) shared(order, a) firstprivate(round)
        {
            pause_a_little();
            order = 3 * round + 1;
        }
#pragma omp target enter data nowait map(to : a) depend(inout : a)
#pragma omp target nowait map(alloc : a) map(tofrom : order) depend(inout : a) firstprivate(round)
        {
            CHECK(order == 3 * round + 1, "enter data came too early: %d", order);
            for (int i = 0; i < 100; i++)
                a[i]++;
            order++;
        }
#pragma omp target update nowait from(a) depend(inout : a)
#pragma omp target exit data nowait map(from : a) depend(inout : a)
#pragma omp task depend(inout : a) shared(order, a) firstprivate(round)
        {
            CHECK(order == 3 * round + 2, "exit data came too early: %d", order);
            CHECK(a[0] == round + 1 && a[99] == round + 1, "data: %d in round %d", a[0], round);
            order++;
        }
    }
    CHECK(order == 60, "data: %d", order);
}

/* A wait for tasks includes target tasks, and the tasks that these have created. */
static void waits(int n)
{
    int done = 0, sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        for (int i = 0; i < 40; i++) {
#pragma omp target nowait map(tofrom : done)
            {
                pause_a_little();
#pragma omp atomic
                done++;
            }
        }
#pragma omp taskwait
        CHECK(done == 40, "taskwait: %d of 40", done);
#pragma omp taskgroup
        for (int i = 0; i < 20; i++) {
#pragma omp task shared(done)
            {
#pragma omp target nowait map(tofrom : done)
                {
                    pause_a_little();
#pragma omp atomic
                    done++;
                }
            }
        }
        CHECK(done == 60, "taskgroup: %d of 60", done);
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < 20; i++) {
#pragma omp target nowait in_reduction(+ : sum) firstprivate(i)
            sum += i;
        }
        CHECK(sum == 190, "reduction: %d", sum);
        for (int i = 0; i < 40; i++) {
#pragma omp target nowait map(tofrom : done)
            {
                pause_a_little();
#pragma omp atomic
                done++;
            }
        }
    }
    CHECK(done == 100, "end of the region: %d of 100", done);
}

struct large {
    char bytes[3000];
};

/* Copies are made when the construct is met, small and large ones, each at its alignment. */
static void copies(int n)
{
    int wrong = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 50; i++) {
        struct large l;
        char c = (char)i;
        long double d = i;
        _Alignas(64) int aligned = i;
        int block[1] = {0};
        memset(&l, i, sizeof l);
#pragma omp task depend(out : wrong)
        pause_a_little();
#pragma omp target nowait firstprivate(l, c, d, aligned, i) map(tofrom : wrong) depend(in : wrong)
        if (l.bytes[0] != i || l.bytes[2999] != i || c != i || d != i || aligned != i) {
#pragma omp atomic
            wrong++;
        }
        memset(&l, -1, sizeof l);
        c = -1, d = -1, aligned = -1, block[0] = -1;
        (void)block, (void)c, (void)d, (void)aligned;
    }
    CHECK(!wrong, "%d target regions found damaged copies", wrong);
}

/* Target tasks may run regions, and teams of them. */
static void regions_inside(int n)
{
    int sum = 0, teams = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 8; i++) {
#pragma omp target nowait map(tofrom : sum)
        {
            int part = 0;
#pragma omp parallel num_threads(3) reduction(+ : part)
            {
#pragma omp barrier
                part += omp_get_thread_num() + 1;
            }
#pragma omp atomic
            sum += part;
        }
#pragma omp target teams num_teams(2) nowait map(tofrom : teams)
        {
#pragma omp parallel for num_threads(2)
            for (int k = 0; k < 10; k++) {
#pragma omp atomic
                teams++;
            }
        }
    }
    CHECK(sum > 0 && sum <= 8 * 6, "regions inside: %d", sum);
    CHECK(teams > 0 && teams % 10 == 0 && teams <= 8 * 20, "teams inside: %d", teams);
}

/* Outside of regions the first such construct makes a team of one. */
static void outside(void)
{
    int x = 0;
    for (int i = 0; i < 20; i++) {
#pragma omp target nowait depend(inout : x) map(tofrom : x) firstprivate(i)
        x = x == i ? i + 1 : -1;
    }
#pragma omp taskwait
    CHECK(x == 20, "outside of regions: %d", x);
}

/* In tasks of nested regions. */
static void nested(int n)
{
    int sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task shared(sum)
        {
#pragma omp target nowait map(tofrom : sum)
            {
#pragma omp atomic
                sum++;
            }
#pragma omp taskwait
        }
    }
    CHECK(sum == 10 * n, "nested: %d of %d", sum, 10 * n);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 16};
    outside();
    omp_set_max_active_levels(3);
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int n = sizes[i];
            chain(n);
            readers(n);
            data(n);
            waits(n);
            copies(n);
            regions_inside(n);
            nested(n);
        }
    outside();
    return check_ok();
}
