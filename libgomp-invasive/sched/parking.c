/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parking.c - the parking lot (parking.h).
 */
#include "libgomp.h"
#include "carrier.h"
#include "history.h"
#include "ready.h"
#include "unheld.h"
#include "workers.h"
#include <string.h>

enum { BUCKETS = 256 };

/* Each bucket: a lock held for a few instructions, a list in order of arrival, and the
 * number of threads that are in it or about to be. */
static struct bucket {
    struct gomp_spinlock lock;
    _Atomic unsigned sleepers; /* seq_cst; partners: gomp_park raises it before it reads
                                  *addr, gomp_unpark's caller changes *addr before it is
                                  read there.  One sees the other */
    struct gomp_waiter *first, **last;
} __attribute__((aligned(64))) lot[BUCKETS];

static struct bucket *bucket_of (int *addr)
{
    uintptr_t key = (uintptr_t)addr >> 2;
    return &lot[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 56 & (BUCKETS - 1)];
}

/* Sleep until woken, or until the time is over (negative: never) and the waiter has left the queue
 * of the ready. */
static void sleep_soundly (struct gomp_waiter *w, int64_t timeout_ns)
{
    uint32_t expected = GOMP_AWAKE;
    if (!atomic_compare_exchange_strong_explicit(&w->word, &expected, GOMP_ASLEEP,
                                                 memory_order_acquire, memory_order_acquire))
        return;
    if (timeout_ns >= 0) {
        inv_futex_wait(&w->word, GOMP_ASLEEP, timeout_ns, false);
        if (atomic_load_explicit(&w->word, memory_order_acquire) == GOMP_ASLEEP &&
            gomp_ready_leave(w))
            return;
    }
    while (atomic_load_explicit(&w->word, memory_order_acquire) == GOMP_ASLEEP)
        inv_futex_wait(&w->word, GOMP_ASLEEP, -1, false);
}

void gomp_waiter_sleep_for (struct gomp_waiter *w, int64_t timeout_ns)
{
    inv_assert(inv_hold == INV_HOLD_NONE || !w->needs_hold);
    sleep_soundly(w, timeout_ns);
    if (w->pinning == GOMP_PIN_FAILED)
        inv_thread_was_asleep();
    if (w->hold != INV_HOLD_NONE)
        inv_hold_begin_handed(w->hold, w->pinning == GOMP_PIN_DONE);
    else if (w->needs_hold && inv_managed())
        gomp_unheld_begin();
}

void gomp_waiter_sleep (struct gomp_waiter *w)
{
    gomp_waiter_sleep_for(w, -1);
}

void gomp_waiter_wake (struct gomp_waiter *w, int hold)
{
    inv_assert(w->hold == INV_HOLD_NONE && w->context == NULL);
    inv_assert(atomic_load_explicit(&w->word, memory_order_relaxed) != GOMP_GO); /* it is woken once */
    w->hold = hold;
    if (hold >= 0 && hold != w->core)
        w->pinning = inv_pin(inv_process.table, w->tid, hold) == 0 ? GOMP_PIN_DONE
                                                                   : GOMP_PIN_FAILED;
    /* After the exchange the waiter may be gone with its stack: only its address is used. */
    _Atomic uint32_t *word = &w->word;
    if (atomic_exchange_explicit(word, GOMP_GO, memory_order_release) == GOMP_ASLEEP)
        inv_futex_wake(word, 1, false);
}

static bool enqueue (struct bucket *b, struct gomp_waiter *w, int *addr, int val)
{
    gomp_spinlock_lock(&b->lock);
    atomic_fetch_add(&b->sleepers, 1);
    bool still = __atomic_load_n(addr, __ATOMIC_SEQ_CST) == val;
    if (still) {
        if (!b->first)
            b->last = &b->first;
        inv_assert(*b->last == NULL && w->next == NULL);
        *b->last = w;
        b->last = &w->next;
    } else
        atomic_fetch_sub(&b->sleepers, 1);
    gomp_spinlock_unlock(&b->lock);
    return still;
}

/* Does the caller hold a core, or is it an unheld thread?  Threads of the program that are neither
 * (several of its threads open regions) need no hold. */
static bool needs_hold (void)
{
    if (!inv_managed())
        return false;
    bool is_unheld = gomp_unheld_self != NULL;
    return gomp_unheld_end() || is_unheld;
}

bool gomp_park_context (struct gomp_waiter *w, struct gomp_context *context, int *addr, int val)
{
    *w = (struct gomp_waiter){.addr = addr, .context = context};
    return enqueue(bucket_of(addr), w, addr, val);
}

/* A context; or the thread that began a region, which may execute contexts of it meanwhile. */
static bool wait_lightly (int *addr, int val)
{
    if (!gomp_in_context())
        return gomp_contexts_run_until(addr, val);
    gomp_context_wait(addr, val);
    return true;
}

void gomp_park (int *addr, int val)
{
    if (wait_lightly(addr, val))
        return;
    struct gomp_waiter w = {.addr = addr,
                            .core = INV_HOLD_NONE,
                            .hold = INV_HOLD_NONE,
                            .needs_hold = needs_hold()};
    if (w.needs_hold) {
        w.tid = inv_own_tid();
        w.core = inv_thread_core();
    }
    if (!enqueue(bucket_of(addr), &w, addr, val)) {
        if (w.needs_hold && inv_hold == INV_HOLD_NONE)
            gomp_unheld_begin(); /* on */
        return;
    }
    if (w.needs_hold) {
        gomp_history_sleeps(addr);
        gomp_hold_yield();
        gomp_check_starved();
    } else
        gomp_contexts_publish();
    gomp_waiter_sleep(&w);
}

/* Unlink up to count waiters on addr; returns them as a list. */
static struct gomp_waiter *dequeue (struct bucket *b, int *addr, int count)
{
    struct gomp_waiter *taken = NULL, **end = &taken, **link;
    gomp_spinlock_lock(&b->lock);
    for (link = &b->first; *link && count > 0;) {
        struct gomp_waiter *w = *link;
        if (w->addr != addr) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        w->next = NULL;
        *end = w;
        end = &w->next;
        count--;
        atomic_fetch_sub_explicit(&b->sleepers, 1, memory_order_relaxed);
    }
    while (*link)
        link = &(*link)->next;
    b->last = link;
    gomp_spinlock_unlock(&b->lock);
    return taken;
}

bool gomp_unpark_sleepers (int *addr, int count)
{
    struct bucket *b = bucket_of(addr);
    /* seq_cst: partner is enqueue, which counts itself and then looks at *addr */
    if (atomic_load(&b->sleepers) == 0)
        return false;
    struct gomp_waiter *next, *w = dequeue(b, addr, count);
    bool ready = false;
    for (; w; w = next) {
        next = w->next;
        if (w->context) {
            gomp_context_is_ready(w->context);
            ready = true;
        } else if (w->needs_hold && inv_managed()) {
            gomp_ready_push(w);
            ready = true;
        } else
            gomp_waiter_wake(w, INV_HOLD_NONE);
    }
    if (ready)
        gomp_want_cores();
    return ready;
}

void gomp_unpark (int *addr, int count)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!gomp_unpark_sleepers(addr, count))
        gomp_contexts_call_cores();
}

void gomp_parking_forget (void)
{
    memset(lot, 0, sizeof lot);
}
