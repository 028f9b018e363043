/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads of the program open regions of the default size, all at the same time, in which implicit
 * tasks meet at barriers.
 * crowded THREADS plain|nested [first|asked]
 * first: the initial thread has had a region before; asked: the program asks for teams of two.
 * Ends with 3 where the program's own threads are refused.
 * @helper
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { ROUNDS = 3, N = 1000 };
static pthread_barrier_t all_open;
static int nested, asked;

/* What the calling thread's team makes of a loop, a barrier and a reduction. */
static void compute(void)
{
    long sum = 0, ids = 0;
    int size = 0;
#pragma omp parallel reduction(+ : sum, ids)
    {
#pragma omp for
        for (int i = 0; i < N; i++)
            sum += i;
        ids += omp_get_thread_num();
#pragma omp single
        size = omp_get_num_threads();
#pragma omp barrier
        ids += size - omp_get_num_threads();
    }
    CHECK(sum == N * (N - 1) / 2 && ids == size * (size - 1) / 2, "%d threads: sum %ld, ids %ld",
          size, sum, ids);
}

static void *run(void *unused)
{
    if (asked)
        omp_set_num_threads(2);
    for (int round = 0; round < ROUNDS; round++) {
        long members = 0;
        int size = 0;
#pragma omp parallel reduction(+ : members)
        {
            if (omp_get_thread_num() == 0) {
                size = omp_get_num_threads();
                pthread_barrier_wait(&all_open);
            }
#pragma omp barrier
            members++;
            if (nested)
                compute();
        }
        CHECK(members == size, "%ld of %d members", members, size);
        compute();
    }
    return unused;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 3;
    const char *more = argc > 3 ? argv[3] : "";
    pthread_t thread[64];
    CHECK(threads > 0 && threads <= 64, "%d threads", threads);
    nested = argc > 2 && strcmp(argv[2], "nested") == 0;
    if (nested)
        omp_set_max_active_levels(2);
    asked = strcmp(more, "asked") == 0;
    if (strcmp(more, "first") == 0)
        compute();
    pthread_barrier_init(&all_open, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, NULL) != 0)
            _exit(3);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    return check_ok();
}
