/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The first use of OpenMP holds the program's signal handlers back; a thread that begins to use
 * OpenMP later does not: programs with a thread for each job would pay for it each time.
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

enum { THREADS = 20 };

static _Atomic int calls;

/* In place of the C library's: the OpenMP runtime looks each handler up with it. */
int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    (void)number;
    (void)action;
    atomic_fetch_add(&calls, 1);
    if (old)
        old->sa_handler = SIG_DFL;
    return 0;
}

static void *job(void *unused)
{
    (void)unused;
    CHECK(omp_get_max_threads() > 0, "no default size of teams");
    return NULL;
}

int main(void)
{
    pthread_t id;
    CHECK(omp_get_max_threads() > 0, "no default size of teams");
    atomic_store(&calls, 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&id, NULL, job, NULL) == 0, "pthread_create");
        CHECK(pthread_join(id, NULL) == 0, "pthread_join");
    }
    CHECK(calls == 0, "%d calls of sigaction in %d threads", calls, THREADS);
    return check_ok();
}
