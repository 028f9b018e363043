/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data of a thread number stay with it: threadprivate variables keep their values from region to
 * region of the same size, thread_local ones throughout a region with barriers, copyin gives the
 * master's to all, and errno and the kernel thread do not change under an implicit task.
 * @env OMP_NUM_THREADS=16
 */
#include "../check.h"
#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <time.h>

enum { MAX = 1024 };

static int calls, seed = 42, number = -1;
#pragma omp threadprivate(calls, seed, number)
static _Thread_local int local_value;
static int *address[MAX], kernel[MAX];

/* Some idle and some busy time, so that cores may move in between. */
static void something(int round)
{
    if (round % 3 == 1)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    for (volatile int i = 0; i < (omp_get_thread_num() % 4) * 20000; i++)
        ;
}

static void persistence(void)
{
    int n = omp_get_max_threads();
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        number = me;
        calls = 0;
        address[me] = &number;
        kernel[me] = kernel_thread();
    }
    for (int round = 1; round <= 20; round++) {
        int members = 0;
#pragma omp parallel reduction(+ : members)
        {
            int me = omp_get_thread_num();
            something(round);
            CHECK(number == me, "round %d: thread %d sees the data of %d", round, me, number);
            CHECK(&number == address[me], "round %d: thread %d has another copy", round, me);
            if (round % 2) {
#pragma omp barrier
            }
            calls++;
            CHECK(calls == round, "round %d: thread %d counts %d calls", round, me, calls);
            members++;
        }
        CHECK(members == n, "%d of %d", members, n);
        something(round);
    }
    CHECK(kernel[0] == kernel_thread(), "the master's thread number 0 ran elsewhere");
}

static void copy_in(void)
{
    for (int round = 0; round < 5; round++) {
        seed = 1000 + round;
        int good = 0;
#pragma omp parallel copyin(seed) reduction(+ : good)
        {
            good += seed == 1000 + round;
            seed = -1;
        }
        CHECK(good == omp_get_max_threads(), "copyin reached %d threads", good);
    }
}

static void within_a_region(void)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num(), thread = kernel_thread();
        local_value = me * 7 + 1;
        errno = me + 1;
        for (int round = 0; round < 10; round++) {
#pragma omp barrier
            if (round % 2) {
#pragma omp for schedule(dynamic) nowait
                for (int i = 0; i < 64; i++)
                    sched_yield();
            }
            CHECK(local_value == me * 7 + 1, "thread_local of thread %d changed", me);
            CHECK(kernel_thread() == thread, "thread %d moved to another kernel thread", me);
            CHECK(omp_get_thread_num() == me, "thread number %d changed", me);
            CHECK(errno == me + 1, "errno of thread %d changed to %d", me, errno);
        }
    }
}

int main(void)
{
    CHECK(omp_get_max_threads() <= MAX, "too many threads");
    omp_set_dynamic(0);
    persistence();
    copy_in();
    within_a_region();
    persistence();
    return check_ok();
}
