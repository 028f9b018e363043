/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * unheld.c - threads that compute without a hold (unheld.h).
 */
#include "libgomp.h"
#include "unheld.h"
#include <stdlib.h>
#include <string.h>

struct gomp_unheld {
    struct gomp_unheld *next;
    int tid;
    int core; /* where it is pinned, INV_HOLD_NONE: nowhere */
    int hold; /* what it has been given and has not seen yet */
};

#undef gomp_unheld_self
__thread struct gomp_unheld *gomp_unheld_self;
#define gomp_unheld_self GOMP_OWN(gomp_unheld_self)
struct gomp_unheld_threads gomp_unheld_threads;

/* The only place where an unheld thread's core and hold change: counts those without a hold by
 * core. */
static void set_core_and_hold (struct gomp_unheld *u, int core, int hold)
{
    if (u->hold == INV_HOLD_NONE && u->core >= 0) {
        inv_assert(u->core < INV_MAX_CORES && gomp_unheld_threads.on[u->core] > 0);
        gomp_unheld_threads.on[u->core]--;
    }
    inv_assert(core < INV_MAX_CORES); /* below 0: no core, or with a token any */
    inv_assert(atomic_load_explicit(&gomp_unheld_threads.lock.held, memory_order_relaxed)); /* by the caller */
    u->core = core;
    u->hold = hold;
    if (u->hold == INV_HOLD_NONE && u->core >= 0)
        gomp_unheld_threads.on[u->core]++;
}

/* Does the thread still have the hold that it was given? */
static bool hold_is_current (const struct gomp_unheld *u)
{
    return u->hold < 0 || inv_hold_is_of(u->hold, u->tid);
}

static void unlink_thread (struct gomp_unheld *u)
{
    struct gomp_unheld **link = &gomp_unheld_threads.first;
    while (*link != u) {
        inv_assert(*link != NULL); /* u is in the list */
        link = &(*link)->next;
    }
    *link = u->next;
    if (u->hold == INV_HOLD_NONE) {
        set_core_and_hold(u, INV_HOLD_NONE, INV_HOLD_NONE);
        unsigned before = atomic_fetch_sub_explicit(&gomp_unheld_threads.waiting, 1, memory_order_relaxed);
        inv_assert(before > 0);
    }
}

/* Of the cores that this process holds, the one with fewest unheld threads besides u.  That is u's
 * own core, if no other has fewer. */
static int lightest_core (const struct gomp_unheld *u)
{
    int best = u->core >= 0 && inv_core_is_held(u->core) ? u->core : INV_HOLD_NONE;
    inv_assert(best < 0 || gomp_unheld_threads.on[best] > 0); /* u itself */
    unsigned least = best >= 0 ? gomp_unheld_threads.on[best] - 1U : 0;
    for (int core = 0; core < (int)inv_process.ncores; core++)
        if (core != best && inv_core_is_held(core) && (best < 0 || gomp_unheld_threads.on[core] < least)) {
            best = core;
            least = gomp_unheld_threads.on[core];
        }
    return best;
}

/* Pins the thread to a core that this process holds.  If it is on such a core it stays: a thread
 * that comes to a busy core waits for a time slice there. */
static void find_core (struct gomp_unheld *u)
{
    if (inv_process.anonymous)
        return;
    int core = lightest_core(u);
    if (core >= 0 && core != u->core && inv_pin(inv_process.table, u->tid, core) == 0)
        set_core_and_hold(u, core, INV_HOLD_NONE);
}

int gomp_unheld_core (unsigned i, unsigned count)
{
    if (inv_process.anonymous)
        return INV_HOLD_NONE;
    inv_assert(i < count);
    unsigned held = 0, own = (unsigned)inv_thread_core(); /* -1: none, begin at 0 */
    for (int core = 0; core < (int)inv_process.ncores; core++)
        held += inv_core_is_held(core);
    int core = inv_some_held_core(own + 1);
    for (unsigned step = i * held / count; step > 0 && core >= 0; step--)
        core = inv_some_held_core((unsigned)core + 1);
    return core;
}

void gomp_unheld_begin (void)
{
    inv_assert(!gomp_unheld_self && inv_hold == INV_HOLD_NONE);
    struct gomp_unheld *u = gomp_malloc(sizeof *u);
    *u = (struct gomp_unheld){
        .tid = inv_own_tid(), .core = INV_HOLD_NONE, .hold = INV_HOLD_NONE};
    gomp_unheld_self = u;
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    u->next = gomp_unheld_threads.first;
    gomp_unheld_threads.first = u;
    int core = inv_thread_core();
    set_core_and_hold(u, core, INV_HOLD_NONE);
    find_core(u);
    if (core >= 0 && u->core == core && !inv_process.anonymous)
        inv_pin(inv_process.table, u->tid, core); /* inv_thread_core may have guessed */
    /* seq_cst: partner is gomp_hold_handover, which gives a hold up and looks again */
    atomic_fetch_add(&gomp_unheld_threads.waiting, 1);
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
}

bool gomp_unheld_end (void)
{
    struct gomp_unheld *u = gomp_unheld_self;
    if (!u)
        return inv_hold != INV_HOLD_NONE;
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    bool given = u->hold != INV_HOLD_NONE && hold_is_current(u);
    unlink_thread(u);
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
    inv_assert(u->tid == inv_own_tid() && inv_hold == INV_HOLD_NONE);
    gomp_unheld_self = NULL;
    inv_thread_was_asleep(); /* other threads have pinned it */
    if (given)
        inv_hold_begin_handed(u->hold, u->hold >= 0 && u->core == u->hold);
    free(u);
    return inv_hold != INV_HOLD_NONE;
}

bool gomp_unheld_check (void)
{
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    bool given = gomp_unheld_self->hold != INV_HOLD_NONE && hold_is_current(gomp_unheld_self);
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
    return given && gomp_unheld_end();
}

/* A thread on the list that has no hold, if possible one on that core. */
static struct gomp_unheld *find_waiting (int core)
{
    struct gomp_unheld *any = NULL;
    for (struct gomp_unheld *u = gomp_unheld_threads.first; u; u = u->next)
        if (u->hold == INV_HOLD_NONE) {
            if (u->core == core)
                return u;
            any = u;
        }
    return any;
}

bool gomp_unheld_place (int hold)
{
    if (atomic_load_explicit(&gomp_unheld_threads.waiting, memory_order_relaxed) == 0)
        return false;
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    struct gomp_unheld *u = find_waiting(hold);
    if (u) {
        bool pin = u->core != hold;
        inv_assert(hold != INV_HOLD_NONE && u->hold == INV_HOLD_NONE);
        set_core_and_hold(u, u->core, hold);
        unsigned before = atomic_fetch_sub_explicit(&gomp_unheld_threads.waiting, 1, memory_order_relaxed);
        inv_assert(before > 0);
        if (inv_hold_handover(hold, u->tid, pin))
            set_core_and_hold(u, hold, hold);
    }
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
    return u != NULL;
}

void gomp_unheld_leave (int hold)
{
    if (hold < 0 || atomic_load_explicit(&gomp_unheld_threads.waiting, memory_order_relaxed) == 0)
        return;
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    for (struct gomp_unheld *u = gomp_unheld_threads.first; u; u = u->next)
        if (u->hold == INV_HOLD_NONE && u->core == hold)
            find_core(u);
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
}

void gomp_unheld_rescue (void)
{
    gomp_spinlock_lock(&gomp_unheld_threads.lock);
    for (struct gomp_unheld *u = gomp_unheld_threads.first; u; u = u->next) {
        if (u->hold != INV_HOLD_NONE && !hold_is_current(u)) {
            /* the thread that took the core has moved this one */
            set_core_and_hold(u, INV_HOLD_NONE, INV_HOLD_NONE);
            atomic_fetch_add(&gomp_unheld_threads.waiting, 1);
        }
        if (u->hold == INV_HOLD_NONE && (u->core < 0 || !inv_core_is_held(u->core)))
            find_core(u);
    }
    gomp_spinlock_unlock(&gomp_unheld_threads.lock);
}

void gomp_unheld_forget (void)
{
    atomic_store(&gomp_unheld_threads.lock.held, 0);
    gomp_unheld_threads.first = NULL;
    memset(gomp_unheld_threads.on, 0, sizeof gomp_unheld_threads.on);
    gomp_unheld_self = NULL;
    atomic_store(&gomp_unheld_threads.waiting, 0);
}
