/* SPDX-License-Identifier: GPL-3.0-or-later */
/* exit_anywhere HOW: the program ends, with its own exit status (7) and its exit handlers run once,
 * wherever exit() is called: by the first or last thread of a region, in a task, with others in a
 * barrier, from another thread while regions run, or from main while another thread runs regions.
 * @status 7
 * @each first last task barrier thread main
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { STATUS = 7 };

static void handler(void)
{
    check_ok();
    fflush(stdout);
}

static void *exits(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    exit(STATUS);
}

static void *endless(void *unused)
{
    (void)unused;
    for (;;) {
#pragma omp parallel num_threads(5)
        {
#pragma omp barrier
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "first";
    pthread_t id;
    CHECK(atexit(handler) == 0, "atexit");
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
    }
    if (!strcmp(how, "first") || !strcmp(how, "last")) {
#pragma omp parallel num_threads(6)
        {
            int me = omp_get_thread_num();
            if (me == (how[0] == 'f' ? 0 : 5))
                exit(STATUS);
            if (me == 2)
                for (;;)
                    pthread_testcancel();
        }
    } else if (!strcmp(how, "task")) {
#pragma omp parallel num_threads(6)
#pragma omp single
        for (int i = 0; i < 50; i++) {
#pragma omp task
            if (i == 30)
                exit(STATUS);
        }
    } else if (!strcmp(how, "barrier")) {
#pragma omp parallel num_threads(6)
        {
            if (omp_get_thread_num() == 3) {
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
                exit(STATUS);
            }
#pragma omp barrier
        }
    } else if (!strcmp(how, "thread")) {
        CHECK(pthread_create(&id, NULL, exits, NULL) == 0, "pthread_create");
        endless(NULL);
    } else if (!strcmp(how, "main")) {
        CHECK(pthread_create(&id, NULL, endless, NULL) == 0, "pthread_create");
        exits(NULL);
    }
    CHECK(0, "still here after exit: %s", how);
}
