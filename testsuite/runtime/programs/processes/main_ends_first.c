/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program whose initial thread ends by pthread_exit ends with its last thread, and the threads of the
 * runtime do not keep it.
 */
#include "../check.h"
#include <pthread.h>
#include <time.h>

static void region(void)
{
    int sum = 0;
#pragma omp parallel num_threads(8) reduction(+ : sum)
    {
#pragma omp barrier
        sum++;
    }
    CHECK(sum == 8, "sum %d", sum);
}

static void *last(void *arg)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
    region();
    check_ok();
    fflush(stdout);
    return arg;
}

int main(void)
{
    pthread_t thread;
    alarm(60); /* a hanging process is to be seen before the test's own time is over */
    region();
    CHECK(pthread_create(&thread, NULL, last, NULL) == 0, "pthread_create");
    pthread_detach(thread);
    pthread_exit(NULL);
}
