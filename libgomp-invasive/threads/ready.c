/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ready.c - the queue of the threads that are ready for a core (ready.h).
 */
#include "ready.h"
#include <string.h>

struct gomp_ready gomp_ready;

static struct gomp_ready_queue *queue_of (int core)
{
    inv_assert(inv_process.ncores <= INV_MAX_CORES);
    bool pinned = core >= 0 && core < INV_MAX_CORES && !inv_unpinned();
    return &gomp_ready.queue[pinned ? core : INV_MAX_CORES];
}

static void count_down (struct gomp_ready_queue *q)
{
    inv_assert(q->count > 0); /* under the lock */
    atomic_store_explicit(&q->count, q->count - 1, memory_order_relaxed);
    atomic_store_explicit(&q->taken, q->taken + 1, memory_order_relaxed);
    unsigned before = atomic_fetch_sub_explicit(&gomp_ready.count, 1, memory_order_relaxed);
    inv_assert(before > 0);
}

void gomp_ready_push (struct gomp_waiter *w)
{
    struct gomp_ready_queue *q = queue_of(w->core);
    inv_assert(w->hold == INV_HOLD_NONE); /* it waits for one */
    w->next = NULL;
    gomp_spinlock_lock(&q->lock);
    inv_assert((q->first == NULL) == (q->count == 0));
    if (q->first)
        q->last->next = w;
    else
        q->first = w;
    q->last = w;
    atomic_store_explicit(&q->count, q->count + 1, memory_order_relaxed);
    /* seq_cst: partner is gomp_hold_handover, which gives a hold up and looks again */
    atomic_fetch_add(&gomp_ready.count, 1);
    gomp_spinlock_unlock(&q->lock);
}

static void unlink_after (struct gomp_ready_queue *q, struct gomp_waiter *before, struct gomp_waiter *w)
{
    if (before)
        before->next = w->next;
    else
        q->first = w->next;
    if (q->last == w)
        q->last = before;
    inv_assert(q->first == NULL || (q->last != NULL && q->last->next == NULL));
    count_down(q);
}

static struct gomp_waiter *take_first (struct gomp_ready_queue *q)
{
    if (atomic_load_explicit(&q->count, memory_order_relaxed) == 0)
        return NULL;
    gomp_spinlock_lock(&q->lock);
    struct gomp_waiter *w = q->first;
    if (w)
        unlink_after(q, NULL, w);
    gomp_spinlock_unlock(&q->lock);
    return w;
}

bool gomp_ready_leave (struct gomp_waiter *w)
{
    struct gomp_ready_queue *q = queue_of(w->core);
    struct gomp_waiter *before = NULL, *x;
    gomp_spinlock_lock(&q->lock);
    for (x = q->first; x && x != w; x = x->next)
        before = x;
    if (x)
        unlink_after(q, before, x);
    gomp_spinlock_unlock(&q->lock);
    return x != NULL;
}

static struct gomp_waiter *steal_waiter (const struct gomp_ready_queue *own)
{
    struct gomp_waiter *w = NULL;
    for (unsigned i = 0; i <= inv_process.ncores && !w; i++) {
        struct gomp_ready_queue *q = &gomp_ready.queue[i < inv_process.ncores ? i : INV_MAX_CORES];
        if (q != own)
            w = take_first(q);
    }
    return w;
}

/* From a queue that no core of this process serves: of threads that are not pinned, or of a core
 * that the process does not hold any more. */
static struct gomp_waiter *take_from_orphans (void)
{
    struct gomp_waiter *w = take_first(&gomp_ready.queue[INV_MAX_CORES]);
    for (unsigned core = 0; core < inv_process.ncores && !w; core++)
        if (atomic_load_explicit(&gomp_ready.queue[core].count, memory_order_relaxed) > 0 &&
            !inv_core_is_held((int)core))
            w = take_first(&gomp_ready.queue[core]);
    return w;
}

/* In one of some calls a thread of another queue, else NULL. */
static struct gomp_waiter *take_overdue (int hold)
{
    enum { ORPHANS_EVERY = 8, OTHERS_EVERY = 64 };
    struct gomp_ready_queue *own = queue_of(hold);
    unsigned mine = atomic_load_explicit(&own->count, memory_order_relaxed);
    unsigned all = atomic_load_explicit(&gomp_ready.count, memory_order_relaxed);
    if (all <= mine || own == &gomp_ready.queue[INV_MAX_CORES])
        return NULL;
    unsigned turn = atomic_load_explicit(&own->turns, memory_order_relaxed) + 1;
    atomic_store_explicit(&own->turns, turn, memory_order_relaxed);
    if (turn % ORPHANS_EVERY != 0)
        return NULL;
    struct gomp_waiter *w = take_from_orphans();
    return w || turn % OTHERS_EVERY != 0 ? w : steal_waiter(own);
}

struct gomp_waiter *gomp_ready_pop (int hold)
{
    if (atomic_load_explicit(&gomp_ready.count, memory_order_relaxed) == 0)
        return NULL;
    struct gomp_ready_queue *own = queue_of(hold);
    struct gomp_waiter *w = take_first(own);
    return w ? w : steal_waiter(own);
}

struct gomp_waiter *gomp_ready_next (int hold)
{
    struct gomp_waiter *w = take_overdue(hold);
    return w ? w : gomp_ready_pop(hold);
}

bool gomp_ready_here (int hold)
{
    return atomic_load_explicit(&queue_of(hold)->count, memory_order_relaxed) > 0;
}

unsigned gomp_ready_taken (void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i <= inv_process.ncores; i++)
        sum += atomic_load_explicit(
            &gomp_ready.queue[i < inv_process.ncores ? i : INV_MAX_CORES].taken, memory_order_relaxed);
    return sum;
}

void gomp_ready_forget (void)
{
    memset(&gomp_ready, 0, sizeof gomp_ready);
}
