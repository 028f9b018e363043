/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * suspended.c - see suspended.h.
 */
#include "suspended.h"
#include "cores.h"

struct gomp_all_suspended gomp_all_suspended = {.ready.last = &gomp_all_suspended.ready.first};
#undef gomp_own_suspended
__thread struct gomp_suspended *gomp_own_suspended;
#define gomp_own_suspended GOMP_OWN(gomp_own_suspended)
__thread uint64_t gomp_carrier_left_ns;

void gomp_suspended_clear (struct gomp_suspended *l)
{
    l->first = l->last_series = NULL;
    l->last = &l->first;
    atomic_store_explicit(&l->count, 0, memory_order_relaxed);
}

void gomp_suspended_enlist (struct gomp_suspended *l)
{
    atomic_store_explicit(&l->used, true, memory_order_relaxed);
    l->next = atomic_load_explicit(&gomp_all_suspended.first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&gomp_all_suspended.first, &l->next, l,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

void gomp_suspended_call_cores (void)
{
    for (struct gomp_suspended *l = gomp_suspended_all(); l; l = l->next)
        if (!gomp_suspended_is_empty(l)) {
            gomp_want_cores();
            return;
        }
}

void gomp_context_is_ready (struct gomp_context *x)
{
    struct gomp_ready_contexts *q = &gomp_all_suspended.ready;
    inv_assert(x->owns_stack);
    x->next = NULL;
    gomp_spinlock_lock(&q->lock);
    inv_assert(*q->last == NULL);
    *q->last = x;
    q->last = &x->next;
    /* seq_cst: partner is gomp_hold_handover, which gives a hold up and looks again */
    atomic_fetch_add(&q->count, 1);
    gomp_spinlock_unlock(&q->lock);
}

uint64_t gomp_carriers_switches (void)
{
    uint64_t all = 0;
    for (struct gomp_suspended *l = gomp_suspended_all(); l; l = l->next)
        all += atomic_load_explicit(&l->switches, memory_order_relaxed);
    return all;
}

uint64_t gomp_carrier_own_switches (void)
{
    struct gomp_suspended *l = gomp_own_suspended;
    return l ? atomic_load_explicit(&l->switches, memory_order_relaxed) : 0;
}

void gomp_suspended_forget (void)
{
    struct gomp_ready_contexts *q = &gomp_all_suspended.ready;
    atomic_store(&q->lock.held, 0);
    q->first = NULL;
    q->last = &q->first;
    atomic_store(&q->count, 0);
}
