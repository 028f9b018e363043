/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cancel_anywhere WHEN: threads that open regions are cancelled, and the process goes on and ends:
 *     join    while the process joins its resource manager, in each of many processes
 *     random  at random times, while others go on
 *     exit    the same, while the process ends
 *     ended   the thread that joined has ended; regions of others use all that it had
 * @each join random exit ended
 */
#include "../check.h"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 12, CHILD_LIMIT_S = 40, THREADS = 12 };

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void region(int threads)
{
    int n = 0;
#pragma omp parallel reduction(+ : n) num_threads(threads)
    n++;
    CHECK(n == threads, "%d of %d threads", n, threads);
}

static void *regions(void *unused)
{
    (void)unused;
    for (int i = 0;; i++) {
        region(2 + i % 4);
        pthread_testcancel();
    }
    return NULL;
}

static void cancel_some(long us, long more_us, long random_us)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *end;
        CHECK(pthread_create(&thread, NULL, regions, NULL) == 0, "pthread_create");
        sleep_us(us + i * more_us + (random_us ? rand() % random_us : 0));
        CHECK(pthread_cancel(thread) == 0, "pthread_cancel");
        CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED, "pthread_join");
    }
}

static void child(int number)
{
    alarm(CHILD_LIMIT_S);
    cancel_some(50 + number * 40, 20, 0);
    region(3);
    _exit(0);
}

static void cancel_while_joining(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            child(i);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "child %d", i);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: status %x", i, status);
    }
}

static void *endless_cancelling(void *unused)
{
    (void)unused;
    for (;;)
        cancel_some(100, 0, 900);
    return NULL;
}

static void cancel_while_exiting(void)
{
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread, NULL, endless_cancelling, NULL) == 0, "pthread_create");
    sleep_us(30000);
}

static void *one_region(void *unused)
{
    region(2);
    return unused;
}

static void joined_by_one_that_ends(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, one_region, NULL) == 0, "pthread_create");
    CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
    for (int i = 0; i < 100; i++)
        region(4);
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "join";
    srand((unsigned)getpid());
    if (!strcmp(when, "join"))
        cancel_while_joining();
    else if (!strcmp(when, "random"))
        cancel_some(100, 0, 2000);
    else if (!strcmp(when, "exit"))
        cancel_while_exiting();
    else
        joined_by_one_that_ends();
    check_ok();
    return 0;
}
