/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A child may be forked wherever its parent is: in the part of a region that one thread executes,
 * in a task, in a critical section, and from a thread while other threads run regions; it can run
 * regions of its own there and end, and the parent's region goes on.
 * @mends stock libgomp's children of a thread with a team hang in their first region
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

static void region(int n, const char *who)
{
    int sum = 0;
#pragma omp parallel num_threads(n) reduction(+ : sum)
    {
#pragma omp barrier
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 10; i++)
            sum += i;
#pragma omp task
        {
        }
    }
    CHECK(sum == 45, "%s: sum %d", who, sum);
}

static void with_child(const char *who)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0, "%s: fork failed", who);
    if (child == 0) {
        alarm(30); /* a hanging child is to be seen before the test's own time is over */
        region(2, who);
        region(5, who);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child, "%s: waitpid failed", who);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: wait status %#x", who,
          (unsigned)status);
}

static void in_region(void)
{
#pragma omp parallel num_threads(5)
    {
#pragma omp single
        with_child("single");
#pragma omp critical
        if (omp_get_thread_num() % 2)
            with_child("critical");
#pragma omp masked
        with_child("masked");
#pragma omp barrier
#pragma omp single
        for (int i = 0; i < 4; i++) {
#pragma omp task
            with_child("task");
        }
    }
}

static atomic_bool stop;

static void *regions(void *which)
{
    while (!atomic_load(&stop))
        region(3 + (int)(long)which, "beside forks");
    return NULL;
}

static void beside_regions(void)
{
    pthread_t ids[2];
    for (long i = 0; i < 2; i++)
        CHECK(pthread_create(&ids[i], NULL, regions, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < 30; i++)
        with_child("beside regions");
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(ids[i], NULL) == 0, "pthread_join");
}

int main(void)
{
    omp_set_max_active_levels(2);
    with_child("before the first region");
    for (int round = 0; round < 3; round++)
        in_region();
    beside_regions();
    region(4, "parent after all");
    return check_ok();
}
