/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that the program creates may all run parallel regions at once, with barriers, nested and
 * of different sizes, and may end and be created anew.
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>

enum { THREADS = 4, GENERATIONS = 3, REGIONS = 30 };

static void *work(void *argument)
{
    int which = (int)(long)argument, self = kernel_thread();
    CHECK(omp_get_level() == 0 && omp_get_thread_num() == 0, "a new thread is not initial");
    for (int i = 0; i < REGIONS; i++) {
        int n = 1 + (i + which * 3) % 9, sum = 0;
#pragma omp parallel num_threads(n) reduction(+ : sum)
        {
            CHECK(omp_get_num_threads() == n, "team of %d, not %d", omp_get_num_threads(), n);
            if (omp_get_thread_num() == 0)
                CHECK(kernel_thread() == self, "thread number 0 runs elsewhere");
            if (i % 3 == 0) {
#pragma omp barrier
            }
#pragma omp for schedule(dynamic)
            for (int k = 0; k < 40; k++)
                sum += k;
        }
        CHECK(sum == 780, "sum %d", sum);
    }
    return NULL;
}

int main(void)
{
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t ids[THREADS];
        for (long i = 0; i < THREADS; i++)
            CHECK(pthread_create(&ids[i], NULL, work, (void *)i) == 0, "pthread_create");
        work((void *)5L);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(ids[i], NULL) == 0, "pthread_join");
    }
    return check_ok();
}
