/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parking.c - the parking lot (parking.h).
 */
#include "parking.h"
#include "process.h"
#include <string.h>

struct gomp_lot_bucket gomp_lot[GOMP_LOT_BUCKETS];

bool gomp_waiter_rest (struct gomp_waiter *w, int64_t timeout_ns)
{
    uint32_t expected = GOMP_AWAKE;
    if (!atomic_compare_exchange_strong_explicit(&w->word, &expected, GOMP_ASLEEP,
                                                 memory_order_acquire, memory_order_acquire) &&
        expected == GOMP_GO)
        return true;
    if (timeout_ns >= 0) {
        inv_futex_wait(&w->word, GOMP_ASLEEP, timeout_ns, false);
        return atomic_load_explicit(&w->word, memory_order_acquire) != GOMP_ASLEEP;
    }
    while (atomic_load_explicit(&w->word, memory_order_acquire) == GOMP_ASLEEP)
        inv_futex_wait(&w->word, GOMP_ASLEEP, -1, false);
    return true;
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

bool gomp_lot_enter (struct gomp_waiter *w, int val)
{
    struct gomp_lot_bucket *b = gomp_lot_bucket(w->addr);
    gomp_spinlock_lock(&b->lock);
    atomic_fetch_add(&b->sleepers, 1);
    bool still = __atomic_load_n(w->addr, __ATOMIC_SEQ_CST) == val;
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

bool gomp_park_context (struct gomp_waiter *w, struct gomp_context *context, int *addr, int val)
{
    *w = (struct gomp_waiter){.addr = addr, .context = context};
    return gomp_lot_enter(w, val);
}

struct gomp_waiter *gomp_lot_take (int *addr, int count)
{
    struct gomp_lot_bucket *b = gomp_lot_bucket(addr);
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

void gomp_parking_forget (void)
{
    memset(gomp_lot, 0, sizeof gomp_lot);
}
