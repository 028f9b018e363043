/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * suspended.h - contexts (context.h) that do not run: those that wait on the carrier that they ran
 * on, and those that are ready for any carrier (carrier.h).
 */
#ifndef GOMP_SUSPENDED_H
#define GOMP_SUSPENDED_H 1

#include "context.h"
#include "spinlock.h"

#pragma GCC visibility push(hidden)

/* What waits on a carrier. */
struct gomp_suspended {
    struct gomp_spinlock lock;
    /* Under the lock: contexts that wait here, in the order in which they began to.  Those in
     * sequence that wait for the same change of a word are a series; last_series is the first
     * context of the last one. */
    struct gomp_context *first, **last, *last_series;
    _Atomic unsigned count; /* of them; written under the lock, read without: a hint */
    /* Written by the carrier's thread, relaxed; read by the watchdog. */
    _Atomic uint64_t switches;
    struct gomp_suspended *next; /* in the list of all, which only grows */
    _Atomic bool used;           /* by a thread that has not ended (acq_rel) */
};

/* The lists of all carriers, and the contexts that are in none of these. */
extern struct gomp_all_suspended {
    /* The newest list.  Writer: a thread that becomes a carrier (gomp_suspended_enlist, release).
     * Readers: carriers, masters, the watchdog (gomp_suspended_all, acquire), which find whole
     * lists. */
    _Atomic(struct gomp_suspended *) first;
    /* The queue of the process, of contexts that are ready.  Writers: any thread that makes a
     * context ready (gomp_context_is_ready), and carriers, which take them (take_public); under the
     * lock. */
    struct gomp_ready_contexts {
        /* Contexts in the list.  Written under the lock; raised seq_cst, after the context is in
         * the list; partner: a carrier that has given its hold up (gomp_hold_handover).  Carriers
         * poll it without the lock, relaxed: a hint, the list is read under the lock. */
        _Atomic unsigned count;
        struct gomp_spinlock lock;
        struct gomp_context *first, **last;
    } __attribute__((aligned(64))) ready;
} gomp_all_suspended;
/* The list of the calling thread; NULL: it is no carrier yet. */
extern __thread struct gomp_suspended *gomp_own_suspended
    __attribute__((tls_model("initial-exec")));
#define gomp_own_suspended GOMP_OWN(gomp_own_suspended)

static inline struct gomp_suspended *gomp_suspended_all (void)
{
    return atomic_load_explicit(&gomp_all_suspended.first, memory_order_acquire);
}

/* Adds a new list to the list of all, as used. */
extern void gomp_suspended_enlist (struct gomp_suspended *);
/* Leaves the list empty; under its lock, or before there are others. */
extern void gomp_suspended_clear (struct gomp_suspended *);
/* A word has changed: calls cores, in case contexts in the lists of carriers waited for that. */
extern void gomp_suspended_call_cores (void);

/* --- what waits on a carrier; under the lock */

static inline bool gomp_context_could_run (const struct gomp_context *x)
{
    /* acquire; partner: the change of the word, after which x sees what the changing thread did
     * before */
    return !x->addr || __atomic_load_n(x->addr, __ATOMIC_ACQUIRE) != x->val;
}

static inline void gomp_suspended_append (struct gomp_suspended *l, struct gomp_context *x)
{
    struct gomp_context *series = l->last_series;
    inv_assert((l->first == NULL) == (l->count == 0) && *l->last == NULL);
    inv_assert(x->owns_stack); /* a loop is in no list */
    x->next = NULL;
    x->series_last = x;
    *l->last = x;
    l->last = &x->next;
    if (series && x->addr && series->addr == x->addr && series->val == x->val)
        series->series_last = x;
    else
        l->last_series = x;
    atomic_store_explicit(&l->count, l->count + 1, memory_order_relaxed);
}

/* The link to the first context that can run, or to NULL.  Only the first of each series is looked
 * at. */
static inline struct gomp_context **gomp_suspended_ready (struct gomp_suspended *l)
{
    struct gomp_context **link = &l->first, *x;
    while ((x = *link) && !gomp_context_could_run(x))
        link = &x->series_last->next;
    return link;
}

/* Takes a context, the first of a series, out of the list.  NULL if *link is. */
static inline struct gomp_context *gomp_suspended_unlink (struct gomp_suspended *l,
                                                          struct gomp_context **link)
{
    struct gomp_context *x = *link;
    if (!x)
        return NULL;
    inv_assert(l->count > 0 && x->series_last != NULL);
    struct gomp_context *heir = x->series_last == x ? NULL : x->next;
    inv_assert(!heir || (heir->addr == x->addr && heir->val == x->val)); /* of the same series */
    if (heir)
        heir->series_last = x->series_last;
    if (l->last_series == x)
        l->last_series = heir;
    *link = x->next;
    if (!x->next)
        l->last = link;
    atomic_store_explicit(&l->count, l->count - 1, memory_order_relaxed);
    return x;
}

/* --- the same without the lock */

static inline bool gomp_suspended_is_empty (struct gomp_suspended *l)
{
    return atomic_load_explicit(&l->count, memory_order_relaxed) == 0;
}

static inline struct gomp_context *gomp_suspended_take (struct gomp_suspended *l)
{
    if (gomp_suspended_is_empty(l))
        return NULL;
    gomp_spinlock_lock(&l->lock);
    struct gomp_context *x = gomp_suspended_unlink(l, gomp_suspended_ready(l));
    gomp_spinlock_unlock(&l->lock);
    return x;
}

/* l may be NULL. */
static inline bool gomp_suspended_any_ready (struct gomp_suspended *l)
{
    if (!l || gomp_suspended_is_empty(l))
        return false;
    gomp_spinlock_lock(&l->lock);
    bool ready = *gomp_suspended_ready(l) != NULL;
    gomp_spinlock_unlock(&l->lock);
    return ready;
}

/* --- the queue of the process, of contexts that are ready */

static inline bool gomp_contexts_are_ready (void)
{
    return atomic_load_explicit(&gomp_all_suspended.ready.count, memory_order_relaxed) > 0;
}

/* Puts a context into that queue.  Whatever it waited for has come. */
extern void gomp_context_is_ready (struct gomp_context *);
/* For the child of a fork. */
extern void gomp_suspended_forget (void);

/* --- for figures */

/* When the calling carrier left the code of one implicit task, if the switch to another is
 * timed (costs.c); else 0. */
extern __thread uint64_t gomp_carrier_left_ns __attribute__((tls_model("initial-exec")));
/* The calling carrier has nothing to switch to, so this is no switch. */
static inline void gomp_carrier_idles (void)
{
    gomp_carrier_left_ns = 0;
}
/* How many switches all carriers, and the calling one, have made.  The first takes a load for each
 * carrier. */
extern uint64_t gomp_carriers_switches (void);
extern uint64_t gomp_carrier_own_switches (void);

#pragma GCC visibility pop
#endif
