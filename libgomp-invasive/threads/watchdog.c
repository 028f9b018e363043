/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * watchdog.c - the thread of the watchdog (watchdog.h).
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "watchdog.h"
#include "free_workers.h"
#include "process.h"
#include "threads.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    /* Read when a region begins. */
    _Atomic uint32_t armed; /* futex; set by gomp_progress_arm, cleared by the watchdog */
    _Atomic bool started;  /* writer: the thread that starts the watchdog, and the child of a fork */
    _Atomic bool initial_ended; /* has the initial thread?  It writes this, seq_cst */
    const struct gomp_watch *watch; /* written when the library is loaded */
    /* Written by workers while they have work, relaxed: how often threads with a hold have taken
     * work; tickets that threads without one are to take, and have taken. */
    _Atomic unsigned taken __attribute__((aligned(64)));
    _Atomic int extras;
    _Atomic unsigned extras_taken;
} dog;

void gomp_watchdog_set (const struct gomp_watch *does)
{
    dog.watch = does;
}

void gomp_progress_note (void)
{
    atomic_fetch_add_explicit(&dog.taken, 1, memory_order_relaxed);
}

void gomp_progress_add_extra (void)
{
    atomic_fetch_add_explicit(&dog.extras, 1, memory_order_relaxed);
}

bool gomp_progress_take_extra (void)
{
    int n = atomic_load_explicit(&dog.extras, memory_order_relaxed);
    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&dog.extras, &n, n - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

void gomp_progress_count_extra (void)
{
    atomic_fetch_add_explicit(&dog.extras_taken, 1, memory_order_relaxed);
}

uint64_t gomp_progress_counted (void)
{
    return (uint64_t)atomic_load_explicit(&dog.taken, memory_order_relaxed) -
           atomic_load_explicit(&dog.extras_taken, memory_order_relaxed);
}

void gomp_progress_drop_extras (void)
{
    atomic_store_explicit(&dog.extras, 0, memory_order_relaxed);
}

void gomp_fatal_starved (void)
{
    gomp_fatal("Thread creation failed: %s, and the threads that there are wait for more: use fewer by "
               "OMP_NUM_THREADS, or see OMP_STACKSIZE and ulimit -u -v", strerror(EAGAIN));
}

/* Is every thread of the process one of the runtime?  A free worker leaves the count before it
 * ends.  So the workers that are counted last were among the threads counted before, unless one was
 * started meanwhile. */
static bool only_ours_left (void)
{
    enum { INITIAL_AND_WATCHDOG = 2 };
    unsigned before, after;
    if (!gomp_free_workers_started(&before))
        return false;
    unsigned threads = inv_threads_now(), ours = INITIAL_AND_WATCHDOG + gomp_free_workers_now();
    return threads > 0 && threads <= ours && gomp_free_workers_started(&after) && after == before;
}

int gomp_watchdogs_now (void)
{
    return atomic_load_explicit(&dog.started, memory_order_relaxed);
}

void gomp_progress_initial_ends (void)
{
    atomic_store(&dog.initial_ended, true);
    if (atomic_load(&dog.started)) {
        atomic_store(&dog.armed, 1);
        inv_futex_wake(&dog.armed, 1, false);
    }
}

/* A process ends with its last thread.  The threads of the runtime must not keep it alive, so the
 * watchdog ends the process when it has no other thread. */
static void end_with_program (void)
{
    enum { LOOK_NS = 20000000 }; /* so much longer may a process last; a look reads /proc */
    const struct timespec pause = {0, LOOK_NS};
    nanosleep(&pause, NULL);
    if (only_ours_left())
        exit(0);
}

static void *watchdog_main (void *arg)
{
    const struct timespec period = {0, GOMP_WATCH_NS};
    (void)arg;
    inv_service_thread();
    dog.watch->forget();
    for (;;) {
        if (__builtin_expect(atomic_load_explicit(&dog.initial_ended, memory_order_relaxed), 0))
            end_with_program();
        else if (dog.watch->is_idle()) {
            dog.watch->forget();
            atomic_store(&dog.armed, 0);
            /* Partner: the fence of gomp_want_cores, between queueing work and gomp_progress_arm's
             * look; the looks for work are relaxed. */
            atomic_thread_fence(memory_order_seq_cst);
            if (!dog.watch->has_reason())
                inv_futex_wait(&dog.armed, 0, -1, false);
        }
        nanosleep(&period, NULL);
        dog.watch->look();
    }
    return NULL;
}

/* With a small stack, unless the program's thread-local data does not fit into it. */
static bool create_watchdog (pthread_t *handle)
{
    enum { STACK_BYTES = 1 << 20 };
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    int error = gomp_create_thread(handle, &small, watchdog_main, NULL);
    if (error == EINVAL)
        error = gomp_create_thread(handle, NULL, watchdog_main, NULL);
    pthread_attr_destroy(&small);
    return error == 0;
}

bool gomp_progress_start (void)
{
    pthread_t handle;
    sigset_t all, old;
    if (atomic_exchange(&dog.started, true))
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool good = create_watchdog(&handle);
    if (good) {
        struct inv_cpus cpus;
        inv_wide_cpus(&cpus);
        pthread_setaffinity_np(handle, sizeof cpus, (cpu_set_t *)&cpus);
        pthread_detach(handle);
    } else { /* the next call tries again */
        atomic_store(&dog.started, false);
        gomp_thread_refused();
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}

void gomp_progress_arm (void)
{
    if (atomic_load_explicit(&dog.armed, memory_order_relaxed))
        return;
    if (atomic_exchange(&dog.armed, 1))
        return;
    if ((!atomic_load(&dog.started) && gomp_refused_lately()) || !gomp_progress_start())
        atomic_store(&dog.armed, 0);
    else
        inv_futex_wake(&dog.armed, 1, false);
}

void gomp_progress_forget (void)
{
    atomic_store(&dog.armed, 0);
    atomic_store(&dog.extras, 0);
    atomic_store(&dog.started, false);
}
