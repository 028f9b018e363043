/* SPDX-License-Identifier: GPL-3.0-or-later */
/* omp_pause_resource_all() gives the runtime's resources back, hard or soft, and the next region
 * works as ever; inside of a region it is refused.  The threads of the caller's teams have ended
 * then, nested ones too, and those of another thread's teams go on.
 */
#include "../threads.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static void region(int n)
{
    int sum = 0;
#pragma omp parallel num_threads(n) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_thread_num();
    }
    CHECK(sum == n * (n - 1) / 2, "sum %d", sum);
}

/* A thread for the runtime to watch with may stay. */
enum { RESIDENTS = 2 };

static void pause_ends_threads(omp_pause_resource_t kind)
{
    region(9);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
    region(4);
    CHECK(omp_pause_resource_all(kind) == 0, "pause refused");
    int left = threads_after_a_while(RESIDENTS);
    CHECK(left <= RESIDENTS, "%d threads are left after a pause", left);
}

static atomic_bool stop;

static void *regions(void *unused)
{
    while (!atomic_load(&stop))
        region(5);
    return unused;
}

static void pause_beside_regions(void)
{
    pthread_t other;
    CHECK(pthread_create(&other, NULL, regions, NULL) == 0, "pthread_create");
    for (int round = 0; round < 20; round++) {
        region(6);
        CHECK(omp_pause_resource_all(round % 2 ? omp_pause_soft : omp_pause_hard) == 0, "refused");
    }
    atomic_store(&stop, true);
    CHECK(pthread_join(other, NULL) == 0, "pthread_join");
}

int main(void)
{
    for (int round = 0; round < 5; round++) {
        region(2 + round);
        CHECK(omp_pause_resource_all(omp_pause_soft) == 0, "soft pause refused");
        region(8);
        CHECK(omp_pause_resource_all(omp_pause_hard) == 0, "hard pause refused");
        CHECK(omp_pause_resource(omp_pause_hard, omp_get_initial_device()) == 0, "second pause");
        region(5);
#pragma omp parallel num_threads(3)
        CHECK(omp_pause_resource_all(omp_pause_soft) != 0, "pause in a region accepted");
    }
    for (int round = 0; round < 3; round++) {
        pause_ends_threads(omp_pause_soft);
        pause_ends_threads(omp_pause_hard);
    }
    pause_beside_regions();
    pause_ends_threads(omp_pause_hard);
    return check_ok();
}
