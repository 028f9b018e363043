/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A child may be forked while another thread is in the first region of its process, which finds out
 * then whether it is managed: the child can run regions, its own first ones, and so can the parent.
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

enum { PROCESSES = 120, LATEST_US = 3000 };

static void *region(void *who)
{
    int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_thread_num();
    }
    CHECK(sum == 6, "%s: sum %d", (const char *)who, sum);
    return NULL;
}

static void expect_success(pid_t child, const char *who)
{
    int status;
    CHECK(child > 0, "%s: fork failed", who);
    CHECK(waitpid(child, &status, 0) == child, "%s: waitpid failed", who);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: wait status %#x", who,
          (unsigned)status);
}

/* A process that has used no OpenMP yet; its child comes after about so many microseconds. */
static void process(int us)
{
    pthread_t other;
    alarm(30); /* a hanging child is to be seen before the test's own time is over */
    CHECK(pthread_create(&other, NULL, region, "other thread") == 0, "pthread_create");
    struct timespec pause = {.tv_nsec = us * 1000L};
    nanosleep(&pause, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        region("child");
        region("child again");
        _exit(0);
    }
    expect_success(child, "child");
    CHECK(pthread_join(other, NULL) == 0, "pthread_join");
    region("parent");
    _exit(0);
}

int main(void)
{
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();
        if (pid == 0)
            process(i * LATEST_US / PROCESSES);
        expect_success(pid, "process");
    }
    region("who used no OpenMP before");
    return check_ok();
}
