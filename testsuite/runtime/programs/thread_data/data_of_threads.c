/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an implicit task keeps by pthread_setspecific is there after a barrier, and a recursive mutex that
 * it holds over a wait keeps others out.
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <stdint.h>

enum { N = 8, ROUNDS = 50 };

static void values_are_kept(void)
{
    pthread_key_t key;
    CHECK(pthread_key_create(&key, NULL) == 0, "no key");
#pragma omp parallel num_threads(N)
    for (int round = 0; round < ROUNDS; round++) {
        intptr_t value = omp_get_thread_num() * 1000 + round + 1;
        pthread_setspecific(key, (void *)value);
#pragma omp barrier
        CHECK((intptr_t)pthread_getspecific(key) == value, "thread %d has %ld",
              omp_get_thread_num(), (long)(intptr_t)pthread_getspecific(key));
#pragma omp barrier
    }
}

static void mutex_keeps_others_out(void)
{
    pthread_mutex_t mutex;
    pthread_mutexattr_t recursive;
    omp_lock_t lock;
    int inside = 0, most = 0;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    omp_init_lock(&lock);
#pragma omp parallel num_threads(N)
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&mutex);
        inside++;
        most = inside > most ? inside : most;
        omp_set_lock(&lock);
#pragma omp taskyield
        omp_unset_lock(&lock);
        inside--;
        pthread_mutex_unlock(&mutex);
    }
    omp_destroy_lock(&lock);
    CHECK(most == 1, "%d threads at once", most);
}

int main(void)
{
    values_are_kept();
    mutex_keeps_others_out();
    return check_ok();
}
