/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The child of a fork can run parallel regions of its own although the threads of its parent's
 * teams do not exist in it, and the parent goes on undisturbed; so can a grandchild, and the child
 * of a fork that another thread than the main one made.
 * @mends stock libgomp hangs in the child's first region
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

static void regions(const char *who)
{
    for (int round = 0; round < 20; round++) {
        int threads = 2 + round % 7, sum = 0, team = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            sum += omp_get_thread_num() + 1;
#pragma omp barrier
#pragma omp single
            team = omp_get_num_threads();
        }
        CHECK(team == threads, "%s: team of %d, not %d", who, team, threads);
        CHECK(sum == threads * (threads + 1) / 2, "%s: sum %d with %d threads", who, sum, threads);
    }
}

static void expect_success(pid_t child, const char *who)
{
    int status;
    CHECK(child > 0, "fork failed");
    CHECK(waitpid(child, &status, 0) == child, "waitpid failed");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: wait status %#x", who,
          (unsigned)status);
}

static void child(bool has_child)
{
    alarm(30); /* a hanging child is to be seen before the test's own time is over */
    regions("child");
    if (has_child) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            regions("grandchild");
            exit(0);
        }
        regions("child while grandchild runs");
        expect_success(grandchild, "grandchild");
    }
    exit(0);
}

static void *in_thread(void *unused)
{
    (void)unused;
    regions("thread");
    pid_t pid = fork();
    if (pid == 0)
        child(false);
    expect_success(pid, "child of a thread");
    regions("thread after fork");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    regions("parent");
    pid_t pid = fork();
    if (pid == 0)
        child(true);
    regions("parent while child runs");
    expect_success(pid, "child");
    CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0, "pthread_create");
    CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
    regions("parent after all");
    return check_ok();
}
