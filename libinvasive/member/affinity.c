/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * affinity.c - the program does not see that we pin its threads.
 *
 * A thread that holds a core is pinned to it.  Whatever it then creates or asks would inherit or see
 * that one core: threads that the program makes itself, the number of processors that MPI, hwloc,
 * Python or C++ find.  So functions of the C library are interposed (we are preloaded): a new thread
 * begins with the affinity that the program had, and a pinned thread that asks for its own affinity
 * is told the same.
 *
 * A pinned thread that binds itself stays where it is.  Programs bind each thread of a region to a
 * core of its own; but one worker may run several of these implicit tasks, and its core may be
 * called back.  The worker would compute on the last of these cores, beside the worker that is
 * pinned there.
 *
 * OpenBLAS on POSIX threads starts a thread for each CPU that it sees.  In a rank among at least as many ranks as
 * cores it is shown one.
 *
 * Unmanaged, all of these functions only pass through; but where a resource manager has been asked
 * for, threads that the program creates are counted (strangers.h), and OpenBLAS is shown its CPU: its constructor
 * asks.
 */
#define _GNU_SOURCE
#include "libinvasive/base/environment.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/hold/strangers.h"
#include "libinvasive/member/next.h"
#include "libinvasive/member/ranks.h"
#include "libinvasive/process/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Written by inv_next_definition (next.h), in any thread. */
struct inv_next inv_next;

#pragma GCC visibility push(default)

struct start {
    void *(*function)(void *);
    void *argument;
    bool unpin;    /* it must not inherit the core of the thread that creates it */
    bool stranger; /* strangers.h */
};

static void *begin_thread(void *memory)
{
    struct start start = *(struct start *)memory;
    free(memory);
    struct inv_cpus cpus;
    if (start.unpin && inv_managed()) {
        inv_wide_cpus(&cpus);
        inv_cpus_set(0, &cpus);
    }
    if (!start.stranger)
        return start.function(start.argument);
    inv_stranger_begins();
    void *result = start.function(start.argument);
    inv_stranger_ends();
    return result;
}

/* Has the program itself said where the new thread is to run?  Attributes say so in glibc only. */
static bool has_affinity(const pthread_attr_t *attr)
{
#ifdef __GLIBC__
    struct inv_cpus mask;
    if (!attr || pthread_attr_getaffinity_np(attr, sizeof mask, (cpu_set_t *)&mask) != 0)
        return false;
    /* Not set reads as all ones. */
    for (size_t i = 0; i < sizeof mask; i++)
        if (((unsigned char *)&mask)[i] != 0xff)
            return true;
#else
    (void)attr;
#endif
    return false;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
                   void *argument)
{
    struct start how = {function, argument, inv_thread_pinned() && !has_affinity(attr),
                        inv_creates_strangers()};
    struct start *start;
    if ((!how.unpin && !how.stranger) || !(start = malloc(sizeof *start)))
        return INV_NEXT(pthread_create)(thread, attr, function, argument);
    *start = how;
    int error = INV_NEXT(pthread_create)(thread, attr, begin_thread, start);
    if (error)
        free(start);
    return error;
}

static bool is_openblas(const void *code)
{
    Dl_info info;
    if (!dladdr(code, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    return strncmp(slash ? slash + 1 : info.dli_fname, "libopenblas", sizeof "libopenblas" - 1) == 0;
}

/* Reduces the mask, if it has all CPUs that the ranks of the node share, to this rank's own CPU.  A
 * mask of fewer CPUs than the domain has cores is a choice of the launcher, the program or its
 * user, and stays. */
static void show_share(size_t size, cpu_set_t *mask)
{
    int cores = inv_getenv_count("INVASIVE_CORES"), ranks = (int)inv_ranks_here();
    int cpus = CPU_COUNT_S(size, mask);
    if (!inv_asked() || inv_switched_off() || cores < 2 || ranks < cores || cpus < cores)
        return;
    int rank = inv_local_rank(), skip = rank > 0 ? rank % cpus : 0;
    for (size_t cpu = 0; cpu < size * 8; cpu++)
        if (CPU_ISSET_S(cpu, size, mask) && skip-- != 0)
            CPU_CLR_S(cpu, size, mask);
}

static void show_own_mask(size_t size, cpu_set_t *mask)
{
    size_t known = sizeof inv_process.own_mask;
    memset(mask, 0, size);
    memcpy(mask, &inv_process.own_mask, size < known ? size : known);
}

/* Has the thread with this mask still the binding of the launcher, which we have widened? */
static bool is_widened(size_t size, const cpu_set_t *mask)
{
    struct inv_cpus cpus;
    if (!inv_managed() || inv_cpus_equal(&inv_process.own_mask, &inv_process.wide_mask))
        return false;
    inv_cpus_clear(&cpus);
    memcpy(&cpus, mask, size < sizeof cpus ? size : sizeof cpus);
    return inv_cpus_equal(&cpus, &inv_process.wide_mask);
}

/* Does pid name the calling thread, and is that one pinned? */
static bool is_pinned_caller(pid_t pid)
{
    return inv_thread_pinned() && (pid == 0 || pid == inv_own_tid());
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
    int result = INV_NEXT(sched_getaffinity)(pid, size, mask);
    if (result == 0 && (is_pinned_caller(pid) ||
                        (is_widened(size, mask) && (pid == 0 || pid == syscall(SYS_gettid)))))
        show_own_mask(size, mask);
    if (result == 0 && pid == 0 && is_openblas(__builtin_return_address(0)))
        show_share(size, mask);
    return result;
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *mask)
{
    int result = INV_NEXT(pthread_getaffinity_np)(thread, size, mask);
    if (result == 0 && ((inv_thread_pinned() && pthread_equal(thread, pthread_self())) ||
                        is_widened(size, mask)))
        show_own_mask(size, mask);
    return result;
}

/* May the program run on one of these CPUs?  CPUs past INV_MAX_CPUS do not count. */
static bool may_run_there(size_t size, const cpu_set_t *mask)
{
    struct inv_cpus asked;
    inv_cpus_clear(&asked);
    memcpy(&asked, mask, size < sizeof asked ? size : sizeof asked);
    inv_cpus_and(&asked, &asked, &inv_process.wide_mask);
    return inv_cpus_count(&asked) > 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
    if (is_pinned_caller(pid) && may_run_there(size, mask))
        return 0;
    return INV_NEXT(sched_setaffinity)(pid, size, mask);
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask)
{
    if (inv_thread_pinned() && pthread_equal(thread, pthread_self()) && may_run_there(size, mask))
        return 0;
    return INV_NEXT(pthread_setaffinity_np)(thread, size, mask);
}

#pragma GCC visibility pop
