/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_unheld_stress.c - unheld threads under fire: they run without a hold, are given cores and
 * hand them on, for the number of milliseconds in argv[1] (default 2000).  Compiled with
 * threads/unheld.c.  What that needs of libinvasive and cores.c is imitated here: three cores,
 * which are free, held, or taken away by an owner.
 *
 * What it checks:
 *  - in the first half at most one thread has a core, and the next one sees what it writes there,
 *    which is not atomic (ThreadSanitizer watches);
 *  - in the second half an owner takes cores at any time, and the watchdog looks after threads that
 *    have lost theirs: no core is lost or given back twice;
 *  - in the end no thread is unheld, and none is counted.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "cores.h"
#include "spinlock.h"
#include "unheld.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CORES = 3, THREADS = 5, HANG_S = 40 };
enum state { FREE, HELD, AWAY };

struct inv_process inv_process = {.managed = true, .ncores = CORES};
#undef inv_hold /* own.h */
#undef inv_hold_is_lent
__thread int inv_hold = INV_HOLD_NONE;
__thread bool inv_hold_is_lent;

static __thread int own_tid, pinned_core = INV_HOLD_NONE;
static _Atomic int state[CORES], holder_tid[CORES];
static long computed[CORES]; /* by the thread that holds it, in the first half */
static _Atomic bool evicting, stopping;
static _Atomic unsigned long given, evicted;

static _Noreturn void fail (const char *what)
{
    fprintf(stderr, "unheld: %s\n", what);
    abort();
}

/* --- libinvasive, as far as it is needed */

int inv_pin (struct inv_table *table, int tid, int core)
{
    (void)table, (void)tid;
    return core % 2 ? 0 : -1; /* the kernel may refuse */
}
bool inv_core_is_held (int core)
{
    return atomic_load(&state[core]) == HELD;
}
int inv_some_held_core (unsigned k)
{
    for (unsigned i = 0; i < CORES; i++)
        if (inv_core_is_held((int)((k + i) % CORES)))
            return (int)((k + i) % CORES);
    return -1;
}
int inv_own_tid (void)
{
    return own_tid;
}
int inv_thread_core (void)
{
    return pinned_core;
}
void inv_thread_was_asleep (void)
{
}
bool inv_hold_handover (int hold, int tid, bool pin)
{
    atomic_store(&holder_tid[hold], tid);
    return !pin || inv_pin(NULL, tid, hold) == 0;
}
bool inv_hold_is_of (int hold, int tid)
{
    return inv_core_is_held(hold) && atomic_load(&holder_tid[hold]) == tid;
}
void inv_hold_begin_handed (int hold, bool pinned)
{
    (void)pinned;
    inv_hold = pinned_core = hold;
    if (inv_core_is_held(hold))
        atomic_store(&holder_tid[hold], own_tid);
}
int inv_hold_detach (void)
{
    int hold = inv_hold, me = own_tid;
    inv_hold = INV_HOLD_NONE;
    return atomic_compare_exchange_strong(&holder_tid[hold], &me, 0) ? hold : INV_HOLD_NONE;
}

/* --- spinlock.c, cores.c */

void *gomp_malloc (size_t size)
{
    return malloc(size);
}
void gomp_spinlock_contended (struct gomp_spinlock *l)
{
    while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
        sched_yield();
}

static void hand_over (int hold)
{
    if (gomp_unheld_place(hold)) {
        atomic_fetch_add_explicit(&given, 1, memory_order_relaxed);
        return;
    }
    int expected = HELD;
    atomic_compare_exchange_strong(&state[hold], &expected, FREE);
    gomp_unheld_leave(hold);
}

void gomp_want_cores (void)
{
    for (int core = 0; core < CORES; core++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&state[core], &expected, HELD))
            hand_over(core);
    }
}

/* --- threads */

static void compute_on (int core)
{
    if (atomic_load(&evicting))
        return; /* others may believe that they hold it, until their next scheduling point */
    computed[core]++;
}

static void *unheld_main (void *arg)
{
    own_tid = (int)(intptr_t)arg;
    unsigned seed = (unsigned)own_tid;
    while (!atomic_load(&stopping)) {
        gomp_unheld_begin();
        gomp_want_cores();
        for (unsigned i = (unsigned)rand_r(&seed) % 20; i > 0 && !gomp_holds_core(); i--)
            if (i % 8 == 0)
                sched_yield();
        if (!gomp_unheld_end())
            continue;
        compute_on(inv_hold);
        int hold = inv_hold_detach();
        if (hold != INV_HOLD_NONE)
            hand_over(hold);
        else if (!atomic_load(&evicting))
            fail("two threads on one core");
    }
    return NULL;
}

static void evict (int core)
{
    int expected = HELD;
    if (!atomic_compare_exchange_strong(&state[core], &expected, AWAY))
        return;
    atomic_store(&holder_tid[core], 0);
    atomic_fetch_add_explicit(&evicted, 1, memory_order_relaxed);
    sched_yield();
    atomic_store(&state[core], FREE);
}

/* The watchdog, and the owner of the cores. */
static void *watchdog_main (void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&stopping)) {
        if (atomic_load(&evicting))
            evict((int)((unsigned)rand_r(&seed) % CORES));
        gomp_unheld_rescue();
        gomp_want_cores();
        sched_yield();
    }
    return NULL;
}

int main (int argc, char **argv)
{
    unsigned ms = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    pthread_t threads[THREADS + 1];
    alarm(HANG_S);
    for (intptr_t i = 0; i <= THREADS; i++)
        if (pthread_create(&threads[i], NULL, i < THREADS ? unheld_main : watchdog_main,
                           (void *)(i + 1)))
            fail("no thread");
    usleep(500 * ms);
    atomic_store(&evicting, true);
    usleep(500 * ms);
    atomic_store(&stopping, true);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int core = 0; core < CORES; core++)
        if (atomic_load(&state[core]) != FREE)
            fail("a core is left");
    if (atomic_load(&gomp_unheld_threads.waiting) != 0)
        fail("an unheld thread is left");
    printf("unheld: %lu cores given, %lu taken away\n", given, evicted);
    return given == 0 || evicted == 0;
}
