/* SPDX-License-Identifier: GPL-3.0-or-later */
/* team_thread_ends exit|cancel [initial]: a thread of a team ends inside a region, which OpenMP leaves undefined: one
 * that is not the initial kernel thread; or the initial one, while it executes another implicit task than thread 0's.
 * Prints "ends" before.  team_thread_ends compute: a region that never ends.
 * @helper of test_ended_team_threads.py
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 100000 };

static void compute(void)
{
#pragma omp parallel num_threads(THREADS)
    for (volatile long steps = 0;; steps++)
        ;
}

static void end(const char *how)
{
    puts("ends");
    fflush(stdout);
    if (strcmp(how, "exit") == 0)
        pthread_exit(NULL);
    CHECK(pthread_cancel(pthread_self()) == 0, "pthread_cancel");
    pthread_testcancel();
    CHECK(0, "the thread goes on");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    int initial = argc > 2, found = 0;
    if (strcmp(how, "compute") == 0)
        compute();
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < ROUNDS; i++) {
        int first = 0;
#pragma omp barrier
        if (omp_get_thread_num() > 0 && (gettid() == getpid()) == initial) {
#pragma omp atomic capture
            first = found++;
            if (first == 0)
                end(how);
        }
    }
    CHECK(0, "no such thread");
}
