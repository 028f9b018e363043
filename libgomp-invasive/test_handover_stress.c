/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_handover_stress.c - parking and the queues of the ready under fire: more threads than cores
 * pass barriers, for the number of milliseconds in argv[1] (default 2000).  Compiled with parking.c
 * and ready.c of threads/, sleepers.c and park.c of sched/.  What they need of libinvasive and of
 * the rest of sched/ is imitated here: two cores, and a list of unused ones.  There are no sources
 * of work, and there is no watchdog.
 *
 * What it checks:
 *  - at most one thread computes on a core, and the next one sees what it writes there, though that
 *    is not atomic (ThreadSanitizer watches);
 *  - no wake-up is lost: a run that hangs is ended by an alarm;
 *  - in the end both cores are free.
 */
#define _GNU_SOURCE
#include "cores.h"
#include "free_workers.h"
#include "hold.h"
#include "park.h"
#include "process.h"
#include "ready.h"
#include "sleepers.h"
#include "suspended.h"
#include "threads.h"
#include "unheld.h"
#include "watchdog.h"
#include <libinvasive/hold/pull.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { CORES = 2, THREADS = 5, HANG_S = 40 };

struct inv_process inv_process = {.managed = true, .ncores = CORES};
#undef inv_hold /* own.h */
#undef inv_hold_is_lent
#undef gomp_unheld_self
__thread int inv_hold = INV_HOLD_NONE;
__thread bool inv_hold_is_lent;
__thread struct gomp_unheld *gomp_unheld_self;
struct gomp_unheld_threads gomp_unheld_threads;

static __thread int last_hold = INV_HOLD_NONE;
static _Atomic int computing[CORES]; /* 0, or 1 while a thread computes there */
static long computed[CORES];       /* by the thread that holds it */
static _Atomic unsigned free_cores = (1u << CORES) - 1;

static _Noreturn void fail (const char *what)
{
    fprintf(stderr, "handover: %s\n", what);
    abort();
}

/* --- libinvasive, as far as it is needed.  An unused core still counts as held. */

int inv_pin (struct inv_table *table, int tid, int core)
{
    (void)table, (void)tid, (void)core;
    return 0;
}
bool inv_core_is_held (int core)
{
    return core >= 0;
}
int inv_own_tid (void)
{
    return 1;
}
struct inv_pulled inv_pull_waiting (bool among_own)
{
    (void)among_own;
    return INV_NONE_PULLED;
}
void inv_pull_end (const struct inv_pulled *pulled)
{
    (void)pulled;
}
int inv_thread_core (void)
{
    return last_hold;
}
void inv_thread_was_asleep (void)
{
}
void inv_hold_begin_handed (int hold, bool pinned)
{
    (void)pinned;
    if (atomic_exchange_explicit(&computing[hold], 1, memory_order_relaxed) != 0)
        fail("two threads on one core");
    inv_hold = last_hold = hold;
    computed[hold]++;
}

/* --- triggers.c: no MPI request is pending */

struct inv_triggers inv_triggers;
bool inv_triggers_look (enum inv_trigger_point where)
{
    (void)where;
    return false;
}
bool inv_triggers_need_me (void)
{
    return false;
}

/* --- suspended.c: there are no contexts */

void gomp_suspended_call_cores (void)
{
}
void gomp_context_is_ready (struct gomp_context *context)
{
    (void)context;
    fail("there is no context");
}

/* --- threads.c, watchdog.c, free_workers.c: no thread is refused */

struct gomp_thread_supply gomp_thread_supply;
unsigned gomp_free_workers_now (void)
{
    return 0;
}
bool gomp_progress_start (void)
{
    return true;
}
void gomp_fatal_starved (void)
{
    fail("there is no thread");
}

/* --- unheld.c, spinlock.c, cores.c, hold.c */

void gomp_unheld_begin (void)
{
    fail("a thread that needs a hold goes on without one");
}
bool gomp_unheld_end (void)
{
    return inv_hold != INV_HOLD_NONE;
}
void gomp_hold_forgo (void)
{
    fail("a thread that needs a hold goes on without one");
}
void gomp_spinlock_contended (struct gomp_spinlock *l)
{
    while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
        sched_yield();
}

static bool place (int hold)
{
    struct gomp_waiter *w = gomp_ready_pop(hold);
    if (w)
        gomp_waiter_wake(w, hold);
    return w != NULL;
}

static void give_back (int hold)
{
    atomic_fetch_or(&free_cores, 1u << hold);
}

/* Called after a thread has queued, and after a core has been given back: one of the two calls sees
 * the other's change.  (libinvasive wakes a parked worker instead.) */
void gomp_want_cores (void)
{
    unsigned set;
    while (atomic_load(&gomp_ready.count) > 0 && (set = atomic_load(&free_cores)) != 0) {
        int hold = __builtin_ctz(set);
        if (atomic_compare_exchange_strong(&free_cores, &set, set & ~(1u << hold)) && !place(hold))
            give_back(hold);
    }
}

void gomp_hold_yield (void)
{
    int hold = inv_hold;
    inv_hold = INV_HOLD_NONE;
    computed[hold]++;
    atomic_store_explicit(&computing[hold], 0, memory_order_relaxed);
    if (place(hold))
        return;
    give_back(hold);
    gomp_want_cores();
}

/* --- the program */

static int generation;
static _Atomic int arrived;
static _Atomic bool stopping;
static bool stop; /* written by the last to arrive */

static void barrier (void)
{
    int seen = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (atomic_fetch_add(&arrived, 1) + 1 < THREADS) {
        while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == seen)
            gomp_park_thread(&generation, seen);
        return;
    }
    stop = atomic_load(&stopping);
    atomic_store(&arrived, 0);
    __atomic_store_n(&generation, seen + 1, __ATOMIC_SEQ_CST);
    gomp_unpark(&generation, THREADS);
}

static void *thread_main (void *arg)
{
    struct gomp_waiter w = {.core = INV_HOLD_NONE, .hold = INV_HOLD_NONE, .needs_hold = true};
    unsigned seed = (unsigned)(intptr_t)arg;
    gomp_ready_push(&w);
    gomp_want_cores();
    gomp_waiter_sleep(&w);
    do {
        for (int i = rand_r(&seed) % 200; i > 0; i--)
            inv_cpu_relax();
        barrier();
    } while (!stop);
    gomp_hold_yield();
    return NULL;
}

int main (int argc, char **argv)
{
    pthread_t threads[THREADS];
    alarm(HANG_S);
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread_main, (void *)i) != 0)
            fail("no thread");
    usleep(1000 * (unsigned)(argc > 1 ? atoi(argv[1]) : 2000));
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (atomic_load(&free_cores) != (1u << CORES) - 1 || atomic_load(&gomp_ready.count) != 0)
        fail("a core or a thread is left");
    if (generation < 10)
        fail("hardly a barrier was passed");
    puts("handover: every thread came through, both cores are free");
    return 0;
}
