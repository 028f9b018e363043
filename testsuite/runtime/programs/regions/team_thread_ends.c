/* SPDX-License-Identifier: GPL-3.0-or-later */
/* team_thread_ends exit|cancel: a thread of a team ends inside a region, which OpenMP leaves undefined.  Prints "ends"
 * before.  team_thread_ends compute: a region that never ends.
 * @helper of test_ended_team_threads.py
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { THREADS = 6, CULPRIT = 3 };

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
    if (strcmp(how, "compute") == 0)
        compute();
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp barrier
        if (omp_get_thread_num() == CULPRIT)
            end(how);
#pragma omp barrier
    }
    return 0;
}
