/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implicit tasks that wait for each other by sleeping in POSIX primitives, which the runtime does
 * not see, make progress: barrier, semaphores, condition variable, pipe.
 * @env OMP_NUM_THREADS=16
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>

enum { MAX = 1024 };

static sem_t turn[MAX];

static void with_barrier(void)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)omp_get_max_threads());
#pragma omp parallel
    for (int i = 0; i < 3; i++)
        pthread_barrier_wait(&barrier);
    pthread_barrier_destroy(&barrier);
}

static void with_semaphores(void)
{
    int n = omp_get_max_threads(), order = 0;
    for (int i = 0; i < n; i++)
        sem_init(&turn[i], 0, i == n - 1);
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        while (sem_wait(&turn[me]))
            ;
        CHECK(order == n - 1 - me, "thread %d came as number %d", me, order);
        order++;
        if (me > 0)
            sem_post(&turn[me - 1]);
    }
    for (int i = 0; i < n; i++)
        sem_destroy(&turn[i]);
}

static void with_condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
    int here = 0, n = omp_get_max_threads();
#pragma omp parallel
    {
        pthread_mutex_lock(&mutex);
        if (++here == n)
            pthread_cond_broadcast(&all_here);
        while (here < n)
            pthread_cond_wait(&all_here, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    CHECK(here == n, "%d of %d", here, n);
}

static void with_pipe(void)
{
    int ends[2], n = omp_get_max_threads(), received = 0;
    CHECK(pipe(ends) == 0, "pipe");
#pragma omp parallel
    {
        char byte = 'x';
        if (omp_get_thread_num() == 0) {
            while (received < n - 1 && read(ends[0], &byte, 1) == 1)
                received++;
        } else {
            CHECK(write(ends[1], &byte, 1) == 1, "write");
        }
    }
    CHECK(received == n - 1, "%d of %d bytes", received, n - 1);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    CHECK(omp_get_max_threads() <= MAX, "too many threads");
    for (int round = 0; round < 3; round++) {
        with_barrier();
        with_semaphores();
        with_condition();
        with_pipe();
    }
    return check_ok();
}
