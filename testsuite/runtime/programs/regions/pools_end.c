/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a thread's regions have made ends with that thread: its team's threads, those of nested
 * teams, and the memory; however many threads come and go, and more at once than the runtime has
 * room for in its tables.
 */
#include "../threads.h"
#include <malloc.h>
#include <omp.h>
#include <pthread.h>

enum { THREADS = 20, GENERATIONS = 5, WARM = 2, SLACK_BYTES = 400000 };
/* The main thread, one for a runtime to watch with, and one that may wait for a core. */
enum { RESIDENTS = 3 };

static void nested(int outer, int inner)
{
#pragma omp parallel num_threads(outer)
#pragma omp parallel num_threads(inner)
    {
#pragma omp barrier
    }
}

static void *work(void *argument)
{
    int which = (int)(long)argument, sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2 + which % 4) reduction(+ : sum)
    {
#pragma omp barrier
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 100; i++)
            sum += i;
    }
    CHECK(sum == 4950, "sum %d", sum);
    if (which % 3 == 0)
        nested(2, 1 + which % 4);
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int i = 0; i < 20; i++) {
#pragma omp task
        {
#pragma omp atomic
            sum++;
        }
    }
    CHECK(sum == 4970, "%d tasks", sum - 4950);
    return NULL;
}

int main(void)
{
    size_t before = 0;
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t ids[THREADS];
        for (long i = 0; i < THREADS; i++)
            CHECK(pthread_create(&ids[i], NULL, work, (void *)i) == 0, "pthread_create");
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(ids[i], NULL) == 0, "pthread_join");
        int left = threads_after_a_while(RESIDENTS);
        CHECK(left <= RESIDENTS, "%d threads are left", left);
        size_t used = mallinfo2().uordblks;
        if (generation < WARM)
            before = used > before ? used : before;
        else
            CHECK(used < before + SLACK_BYTES, "memory grew from %zu to %zu bytes", before, used);
    }
    return check_ok();
}
