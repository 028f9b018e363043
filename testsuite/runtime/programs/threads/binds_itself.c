/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A thread that the runtime has pinned stays on its core when the program binds it to another
 * one, and the program is told that it worked.  (One worker may run the implicit tasks of several
 * threads that bind themselves: later regions would share the core of the last of them.)
 * CPUs that the program may not use are refused as ever.
 */
#define _GNU_SOURCE
#include "../check.h"
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

static cpu_set_t start;

/* The kernel's word, which nothing interposes. */
static cpu_set_t bound_to(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0, "sched_getaffinity");
    return set;
}

static cpu_set_t nth_cpu(int n)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &start) && n-- == 0)
            CPU_SET(cpu, &one);
    return one;
}

static void check_stays(cpu_set_t other)
{
    cpu_set_t before = bound_to(), none;
    CHECK(sched_setaffinity(0, sizeof other, &other) == 0, "sched_setaffinity");
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof other, &other) == 0,
          "pthread_setaffinity_np");
    cpu_set_t now = bound_to();
    CHECK(CPU_EQUAL(&before, &now), "the program has moved a thread off its core");
    CPU_ZERO(&none);
    CHECK(sched_setaffinity(0, sizeof none, &none) == -1 && errno == EINVAL, "no CPU at all");
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof none, &none) == EINVAL, "no CPU at all");
}

int main(void)
{
    int failed = 0;
    start = bound_to();
    int cpus = CPU_COUNT(&start);
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
    }
    cpu_set_t now = bound_to();
    if (CPU_COUNT(&now) == 1 && cpus > 1) { /* managed, on real cores */
        cpu_set_t first = nth_cpu(0);
        check_stays(nth_cpu(CPU_EQUAL(&now, &first) ? 1 : 0));
    }
#pragma omp parallel num_threads(2) reduction(+ : failed)
    {
        cpu_set_t own = nth_cpu(omp_get_thread_num() % cpus);
        failed += pthread_setaffinity_np(pthread_self(), sizeof own, &own) != 0;
    }
    CHECK(!failed, "a thread of a region cannot bind itself");
    return check_ok();
}
