/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * helper.c - a thread that tests pending requests while no other thread does: all of them compute,
 * or sleep in OpenMP, or the OpenMP runtime does not test.  Only with MPI_THREAD_MULTIPLE.
 *
 * It sleeps between two tests, longer the longer nothing has come (inv_triggers_slice).  While others
 * test it only sleeps.
 */
#define _GNU_SOURCE
#include "mpi-shim/triggers/helper.h"
#include "libinvasive/base/now.h"
#include "mpi-shim/triggers/list.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

/* All under the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t called;
    pthread_t thread;
    bool runs, ends;
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER};

/* How the thread gets the CPUs that a thread of the program would have. */
__attribute__((weak)) int inv_thread_unpin_for_child(void);
__attribute__((weak)) void inv_thread_repin(int pinned);

static bool is_pending(void)
{
    return atomic_load_explicit(&triggers_shared()->pending, memory_order_relaxed) > 0;
}

/* Sleeps while nothing is pending.  False: the thread is to end. */
static bool wait_for_call(void)
{
    pthread_mutex_lock(&helper.lock);
    while (!helper.ends && !is_pending())
        pthread_cond_wait(&helper.called, &helper.lock);
    bool goes_on = !helper.ends;
    pthread_mutex_unlock(&helper.lock);
    return goes_on;
}

static void *helper_main(void *arg)
{
    (void)arg;
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t since = inv_now_ns();
    int64_t slice = inv_triggers_slice(0);
    while (wait_for_call()) {
        nanosleep(&(struct timespec){.tv_nsec = slice}, NULL);
        uint64_t now = inv_now_ns();
        bool others = now - triggers_tested_ns() < (uint64_t)slice;
        if (!others && triggers_test(INV_AT_IDLE))
            since = now;
        slice = inv_triggers_slice(now - since);
    }
    return NULL;
}

/* Without signals, which are the program's. */
static void make_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int pinned = inv_thread_unpin_for_child ? inv_thread_unpin_for_child() : 0;
    helper.runs = pthread_create(&helper.thread, NULL, helper_main, NULL) == 0;
    if (inv_thread_repin)
        inv_thread_repin(pinned);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void triggers_helper_call(void)
{
    pthread_mutex_lock(&helper.lock);
    if (!helper.runs && !helper.ends)
        make_thread();
    pthread_cond_signal(&helper.called);
    pthread_mutex_unlock(&helper.lock);
}

void triggers_helper_end(void)
{
    pthread_mutex_lock(&helper.lock);
    bool runs = helper.runs;
    helper.ends = true;
    helper.runs = false;
    pthread_cond_signal(&helper.called);
    pthread_mutex_unlock(&helper.lock);
    if (runs && !pthread_equal(helper.thread, pthread_self()))
        pthread_join(helper.thread, NULL);
}
