/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * two.h - what the benchmarks have in common: the clock, quantiles, the message of a failure.  For
 * those that measure with a second process also that process, started as the same program with
 * another first argument, and memory that both see.
 */
#ifndef BENCH_TWO_H
#define BENCH_TWO_H

#include "libinvasive/base/futex.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t two_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void two_fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Memory of `bytes`, zero, in descriptor *fd, which the second process inherits. */
static inline void *two_share(size_t bytes, int *fd)
{
    *fd = memfd_create("bench", 0);
    void *memory = MAP_FAILED;
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (memory == MAP_FAILED)
        two_fail("shared memory");
    return memory;
}

/* The second process: argv is {program, role, descriptor}.  It does not outlive this one. */
static inline pid_t two_start(const char *role, int fd)
{
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            execl("/proc/self/exe", "second", role, number, (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        two_fail("fork");
    return pid;
}

/* In the second process. */
static inline void *two_attach(const char *number, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(number), 0);
    if (memory == MAP_FAILED)
        two_fail("shared memory");
    return memory;
}

static inline void two_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline void two_pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        two_fail("sched_setaffinity");
}

/* The k-th CPU that this process may use, -1 when it has fewer. */
static inline int two_cpu(int k)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        two_fail("sched_getaffinity");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &cpus) && k-- == 0)
            return cpu;
    return -1;
}

/* Spin until the other process has set the word.  acquire: partner is its two_set. */
static inline void two_await(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        inv_cpu_relax();
}

static inline void two_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline void two_busy_ns(uint64_t ns)
{
    uint64_t end = two_now_ns() + ns;
    while (two_now_ns() < end)
        inv_cpu_relax();
}

static inline void two_sleep_ns(long ns)
{
    const struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static int two_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline double two_quantile(double *values, unsigned n, double q)
{
    qsort(values, n, sizeof *values, two_compare);
    return n ? values[(unsigned)(q * (n - 1) + 0.5)] : -1;
}

#endif
