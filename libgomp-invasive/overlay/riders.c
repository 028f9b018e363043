/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * riders.c - threads that compute without a hold (riders.h).
 */
#include "libgomp.h"
#include "riders.h"
#include "workers.h"
#include <stdlib.h>
#include <string.h>

struct gomp_rider {
    struct gomp_rider *next;
    int tid;
    int core; /* where it is pinned, INV_HOLD_NONE: nowhere */
    int hold; /* what it has been given and has not seen yet */
};

#undef gomp_riding
__thread struct gomp_rider *gomp_riding;
#define gomp_riding GOMP_OWN(gomp_riding)
_Atomic unsigned gomp_riders_waiting;

/* The list and all that is in it are changed under the lock only.  Held across the system call that
 * moves a rider: it must not go on and hand its hold over meanwhile. */
static struct gomp_spinlock lock;
static struct gomp_rider *riders;
static unsigned short riders_on[INV_MAX_CORES]; /* of those without a hold, for each core */

/* Where a rider is, and whether it has a hold there, changes here only. */
static void put_rider (struct gomp_rider *r, int core, int hold)
{
    if (r->hold == INV_HOLD_NONE && r->core >= 0)
        riders_on[r->core]--;
    r->core = core;
    r->hold = hold;
    if (r->hold == INV_HOLD_NONE && r->core >= 0)
        riders_on[r->core]++;
}

/* Is the core still ours, and tid on it? */
static bool hold_is_current (const struct gomp_rider *r)
{
    return r->hold < 0 || inv_hold_is_of(r->hold, r->tid);
}

static void unlink_rider (struct gomp_rider *r)
{
    struct gomp_rider **link = &riders;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    if (r->hold == INV_HOLD_NONE) {
        put_rider(r, INV_HOLD_NONE, INV_HOLD_NONE);
        atomic_fetch_sub_explicit(&gomp_riders_waiting, 1, memory_order_relaxed);
    }
}

/* Of the cores that this process holds one that has fewest riders but r, which has no hold: r's
 * own, if no other has fewer. */
static int lightest_core (const struct gomp_rider *r)
{
    int best = r->core >= 0 && inv_core_is_held(r->core) ? r->core : INV_HOLD_NONE;
    unsigned least = best >= 0 ? riders_on[best] - 1U : 0;
    for (int core = 0; core < (int)inv_process.ncores; core++)
        if (core != best && inv_core_is_held(core) && (best < 0 || riders_on[core] < least)) {
            best = core;
            least = riders_on[core];
        }
    return best;
}

/* Pin the rider to a core that this process holds.  One that is on such a core stays: whoever
 * comes to a busy core waits for a time slice there. */
static void find_core (struct gomp_rider *r)
{
    if (inv_process.anonymous)
        return;
    int core = lightest_core(r);
    if (core >= 0 && core != r->core && inv_pin(inv_process.table, r->tid, core) == 0)
        put_rider(r, core, INV_HOLD_NONE);
}

int gomp_rider_core (unsigned i, unsigned count)
{
    if (inv_process.anonymous)
        return INV_HOLD_NONE;
    unsigned held = 0, own = (unsigned)inv_thread_core(); /* none: -1, before the first */
    for (int core = 0; core < (int)inv_process.ncores; core++)
        held += inv_core_is_held(core);
    int core = inv_some_held_core(own + 1);
    for (unsigned step = i * held / count; step > 0 && core >= 0; step--)
        core = inv_some_held_core((unsigned)core + 1);
    return core;
}

void gomp_ride (void)
{
    struct gomp_rider *r = gomp_malloc(sizeof *r);
    *r = (struct gomp_rider){
        .tid = inv_own_tid(), .core = INV_HOLD_NONE, .hold = INV_HOLD_NONE};
    gomp_riding = r;
    gomp_spinlock_lock(&lock);
    r->next = riders;
    riders = r;
    int core = inv_thread_core();
    put_rider(r, core, INV_HOLD_NONE);
    find_core(r);
    if (core >= 0 && r->core == core && !inv_process.anonymous)
        inv_pin(inv_process.table, r->tid, core); /* it may have been a guess */
    /* seq_cst: partner is gomp_hold_handover, which gives a hold up and looks again */
    atomic_fetch_add(&gomp_riders_waiting, 1);
    gomp_spinlock_unlock(&lock);
    gomp_want_cores();
}

bool gomp_ride_end (void)
{
    struct gomp_rider *r = gomp_riding;
    if (!r)
        return inv_hold != INV_HOLD_NONE;
    gomp_spinlock_lock(&lock);
    bool given = r->hold != INV_HOLD_NONE && hold_is_current(r);
    unlink_rider(r);
    gomp_spinlock_unlock(&lock);
    gomp_riding = NULL;
    inv_thread_was_asleep(); /* others have pinned it */
    if (given)
        inv_hold_begin_handed(r->hold, r->hold >= 0 && r->core == r->hold);
    free(r);
    return inv_hold != INV_HOLD_NONE;
}

bool gomp_ride_check (void)
{
    gomp_spinlock_lock(&lock);
    bool given = gomp_riding->hold != INV_HOLD_NONE && hold_is_current(gomp_riding);
    gomp_spinlock_unlock(&lock);
    return given && gomp_ride_end();
}

/* A rider without a hold, if possible one on that core. */
static struct gomp_rider *who_waits (int core)
{
    struct gomp_rider *any = NULL;
    for (struct gomp_rider *r = riders; r; r = r->next)
        if (r->hold == INV_HOLD_NONE) {
            if (r->core == core)
                return r;
            any = r;
        }
    return any;
}

bool gomp_rider_place (int hold)
{
    if (atomic_load_explicit(&gomp_riders_waiting, memory_order_relaxed) == 0)
        return false;
    gomp_spinlock_lock(&lock);
    struct gomp_rider *r = who_waits(hold);
    if (r) {
        bool pin = r->core != hold;
        put_rider(r, r->core, hold);
        atomic_fetch_sub_explicit(&gomp_riders_waiting, 1, memory_order_relaxed);
        if (inv_hold_handover(hold, r->tid, pin))
            put_rider(r, hold, hold);
    }
    gomp_spinlock_unlock(&lock);
    return r != NULL;
}

void gomp_riders_leave (int hold)
{
    if (hold < 0 || atomic_load_explicit(&gomp_riders_waiting, memory_order_relaxed) == 0)
        return;
    gomp_spinlock_lock(&lock);
    for (struct gomp_rider *r = riders; r; r = r->next)
        if (r->hold == INV_HOLD_NONE && r->core == hold)
            find_core(r);
    gomp_spinlock_unlock(&lock);
}

void gomp_riders_look (void)
{
    gomp_spinlock_lock(&lock);
    for (struct gomp_rider *r = riders; r; r = r->next) {
        if (r->hold != INV_HOLD_NONE && !hold_is_current(r)) {
            /* who took the core has moved the thread */
            put_rider(r, INV_HOLD_NONE, INV_HOLD_NONE);
            atomic_fetch_add(&gomp_riders_waiting, 1);
        }
        if (r->hold == INV_HOLD_NONE && (r->core < 0 || !inv_core_is_held(r->core)))
            find_core(r);
    }
    gomp_spinlock_unlock(&lock);
}

void gomp_riders_forget (void)
{
    atomic_store(&lock.held, 0);
    riders = NULL;
    memset(riders_on, 0, sizeof riders_on);
    gomp_riding = NULL;
    atomic_store(&gomp_riders_waiting, 0);
}
