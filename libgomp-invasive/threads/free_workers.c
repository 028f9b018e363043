/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * free_workers.c - see free_workers.h.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "free_workers.h"
#include "threads.h"
#include <limits.h>
#include <time.h>

struct gomp_free_workers gomp_workers;

void gomp_free_workers_execute (void *(*main) (void *))
{
    gomp_workers.main = main;
}

bool gomp_free_worker_start (int hold)
{
    pthread_t handle;
    atomic_fetch_add(&gomp_workers.starting, 1);
    atomic_fetch_add(&gomp_workers.started, 1);
    atomic_fetch_add(&gomp_workers.count, 1);
    if (gomp_create_thread(&handle, &gomp_thread_attr, gomp_workers.main, (void *)(intptr_t)hold) != 0) {
        int workers = atomic_fetch_sub(&gomp_workers.count, 1);
        int begins = atomic_fetch_sub(&gomp_workers.starting, 1);
        inv_assert(workers > 0 && begins > 0);
        gomp_thread_refused();
        return false;
    }
    pthread_detach(handle);
    return true;
}

bool gomp_spare_wake (int hold)
{
    inv_assert(inv_hold_is_valid(hold));
    gomp_spinlock_lock(&gomp_workers.lock);
    struct gomp_waiter *w = gomp_workers.spares;
    if (w)
        gomp_workers.spares = w->next;
    gomp_spinlock_unlock(&gomp_workers.lock);
    if (w)
        gomp_waiter_wake(w, hold);
    return w != NULL;
}

void gomp_spare_add (struct gomp_waiter *w)
{
    gomp_spinlock_lock(&gomp_workers.lock);
    w->next = gomp_workers.spares;
    gomp_workers.spares = w;
    gomp_spinlock_unlock(&gomp_workers.lock);
}

bool gomp_free_worker_goes_on (void)
{
    bool found = false;
    gomp_spinlock_lock(&gomp_workers.lock);
    for (struct gomp_free_worker *w = gomp_workers.present; w && !found; w = w->next)
        found = !atomic_load_explicit(&w->ending, memory_order_relaxed);
    gomp_spinlock_unlock(&gomp_workers.lock);
    return found;
}

void gomp_free_worker_signals (void)
{
    gomp_spinlock_lock(&gomp_workers.lock);
    sigset_t mask = gomp_workers.program_signals;
    gomp_spinlock_unlock(&gomp_workers.lock);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

void gomp_free_worker_enter (struct gomp_free_worker *self)
{
    gomp_spinlock_lock(&gomp_workers.lock);
    self->next = gomp_workers.present;
    gomp_workers.present = self;
    gomp_spinlock_unlock(&gomp_workers.lock);
    int before = atomic_fetch_sub(&gomp_workers.starting, 1);
    inv_assert(before > 0);
}

void gomp_free_worker_leave (struct gomp_free_worker *self)
{
    gomp_spinlock_lock(&gomp_workers.lock);
    struct gomp_free_worker **link = &gomp_workers.present;
    while (*link != self) {
        inv_assert(*link != NULL); /* self is in the list */
        link = &(*link)->next;
    }
    *link = self->next;
    gomp_spinlock_unlock(&gomp_workers.lock);
}

int gomp_free_workers_enough (void)
{
    enum { ON_THEIR_WAY = 8 };
    int enough = atomic_load(&gomp_workers.kept);
    return enough > 0 ? enough + ON_THEIR_WAY : 0;
}

unsigned gomp_free_workers_now (void)
{
    int n = atomic_load(&gomp_workers.count);
    return n > 0 ? (unsigned)n : 0;
}

bool gomp_free_workers_started (unsigned *n)
{
    *n = atomic_load(&gomp_workers.started);
    return atomic_load(&gomp_workers.starting) == 0;
}

void gomp_workers_keep (int more)
{
    int before = atomic_fetch_add(&gomp_workers.kept, more);
    inv_assert(before >= 0 && before + more >= 0);
    if (more <= 0)
        return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    gomp_spinlock_lock(&gomp_workers.lock);
    gomp_workers.program_signals = mask;
    gomp_spinlock_unlock(&gomp_workers.lock);
}

void gomp_workers_trim (bool wait)
{
    enum { PATIENCE_NS = 500000000, LOOK_NS = 50000 };
    int excess = atomic_load(&gomp_workers.count) - atomic_load(&gomp_workers.kept);
    if (excess <= 0)
        return;
    atomic_fetch_add(&gomp_workers.leave_word, 1);
    inv_futex_wake(&gomp_workers.leave_word, INT_MAX, false);
    while (excess-- > 0 && inv_managed() &&
           (gomp_spare_wake(INV_HOLD_NONE) || inv_parked_wake(INV_HOLD_NONE)))
        ;
    const struct timespec look = {0, LOOK_NS};
    uint64_t start = inv_now_ns();
    while (wait && atomic_load(&gomp_workers.count) > gomp_free_workers_enough() &&
           inv_now_ns() - start < PATIENCE_NS)
        nanosleep(&look, NULL);
}

void gomp_free_workers_forget (void)
{
    atomic_store(&gomp_workers.lock.held, 0);
    gomp_workers.spares = NULL;
    gomp_workers.present = NULL;
    atomic_store(&gomp_workers.starting, 0);
    atomic_store(&gomp_workers.count, 0);
    atomic_store(&gomp_workers.kept, 0);
    atomic_store(&gomp_workers.staying, false);
    atomic_store(&gomp_workers.tickets_first, 0);
}
