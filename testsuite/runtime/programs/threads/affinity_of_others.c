/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pinning is the runtime's private matter: threads and processes that the program creates outside
 * of a region have the affinity that the program was started with, and omp_get_num_procs() is the
 * same before, in and after regions, and in such threads.
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static cpu_set_t start;
static int start_procs;

static void region(void)
{
    int procs_differ = 0;
#pragma omp parallel reduction(+ : procs_differ)
    {
#pragma omp barrier
        procs_differ += omp_get_num_procs() != start_procs;
    }
    CHECK(!procs_differ, "omp_get_num_procs() is another one in a region");
}

static void check_here(const char *where)
{
    cpu_set_t now;
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0, "sched_getaffinity");
    CHECK(CPU_EQUAL(&now, &start), "%s may use %d processors instead of %d", where,
          CPU_COUNT(&now), CPU_COUNT(&start));
    CHECK(omp_get_num_procs() == start_procs, "%s: omp_get_num_procs() is %d instead of %d", where,
          omp_get_num_procs(), start_procs);
}

static void *thread(void *where)
{
    check_here(where);
    return NULL;
}

static void *thread_with_region(void *where)
{
    check_here(where);
    region();
    pthread_t inner;
    CHECK(pthread_create(&inner, NULL, thread, "a thread that a thread with regions created") == 0,
          "pthread_create");
    CHECK(pthread_join(inner, NULL) == 0, "pthread_join");
    return NULL;
}

static void in_thread(void *(*function)(void *), const char *where)
{
    pthread_t id;
    CHECK(pthread_create(&id, NULL, function, (void *)where) == 0, "pthread_create");
    CHECK(pthread_join(id, NULL) == 0, "pthread_join");
}

static void in_process(void)
{
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0, "fork");
    if (pid == 0) {
        check_here("the child of a fork");
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
    CHECK(status == 0, "the child's checks failed");

    /* system() and posix_spawn() run no fork handlers. */
    char command[64];
    snprintf(command, sizeof command, "test \"$(nproc)\" = %d", CPU_COUNT(&start));
    unsetenv("OMP_NUM_THREADS"); /* nproc would heed it */
    unsetenv("OMP_THREAD_LIMIT");
    CHECK(system(command) == 0, "a spawned process may use fewer processors");
}

int main(void)
{
    CHECK(sched_getaffinity(0, sizeof start, &start) == 0, "sched_getaffinity");
    start_procs = omp_get_num_procs();
    CHECK(start_procs >= 1 && start_procs <= CPU_COUNT(&start), "%d processors", start_procs);
    for (int round = 0; round < 3; round++) {
        region();
        CHECK(omp_get_num_procs() == start_procs, "the master's omp_get_num_procs() changed");
        in_thread(thread, "a thread created after a region");
        in_thread(thread_with_region, "a thread with regions");
        in_process();
    }
    return check_ok();
}
