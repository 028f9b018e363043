/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parking.h - the parking lot: threads and contexts asleep on addresses.
 *
 * It is a futex in user space, with two differences that malleability needs.  A wake without a
 * sleeper makes no system call.  And what is taken out of the lot does not run at once: a thread of
 * a managed process goes on when a core of the claim is free for it, which is left to the caller
 * (sleepers.h).  The idea is WebKit's parking lot: a hash of short lists, keyed by address, and no
 * state in the words themselves.
 *
 * The lot knows nothing of cores, holds, or regions.
 */
#ifndef GOMP_PARKING_H
#define GOMP_PARKING_H 1

#include "spinlock.h"
#include <libinvasive/base/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A sleeping thread, on whose stack the struct is, or a suspended context.  It is in the lot, or in
 * the list of those ready to run, or in neither: then its waker is about to set `word`. */
struct gomp_context;
struct gomp_waiter {
    struct gomp_waiter *next;
    int *addr;
    int tid;
    int core;        /* the thread's last one, to which it is pinned; INV_HOLD_NONE: none */
    struct gomp_context *context; /* the context (context.h); NULL: this is a thread */
    bool needs_hold; /* the thread held a core when it went to sleep, and needs one to go on */
    /* written by the waker before word, read by the sleeper after it */
    int hold;
    enum gomp_pinning {
        GOMP_PIN_UNTOUCHED, /* the waker has left the thread where it was */
        GOMP_PIN_DONE,      /* the waker has pinned it to the core of the hold */
        GOMP_PIN_FAILED     /* the waker has tried to */
    } pinning;
    /* enum gomp_waiting.  The sleeper sets ASLEEP by CAS, the waker GO by exchange (release;
     * partner: the sleeper's acquire loads).  Futex */
    _Atomic uint32_t word;
};

/* A waker makes a system call only for a thread that is asleep. */
enum gomp_waiting { GOMP_AWAKE, GOMP_GO, GOMP_ASLEEP };

enum { GOMP_LOT_BUCKETS = 256 };

/* Each bucket: a lock held for a few instructions, a list in order of arrival, and the
 * number of waiters that are in it or about to be. */
extern struct gomp_lot_bucket {
    struct gomp_spinlock lock;
    _Atomic unsigned sleepers; /* seq_cst; partners: gomp_lot_enter raises it before it reads
                                  *addr, a waker changes *addr before it reads this.  One sees
                                  the other */
    struct gomp_waiter *first, **last;
} __attribute__((aligned(64))) gomp_lot[GOMP_LOT_BUCKETS];

static inline struct gomp_lot_bucket *gomp_lot_bucket (int *addr)
{
    uintptr_t key = (uintptr_t)addr >> 2;
    return &gomp_lot[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 56 & (GOMP_LOT_BUCKETS - 1)];
}

/* Puts the waiter into the lot, where it waits for *w->addr to change from val.  False: it has
 * changed. */
extern bool gomp_lot_enter (struct gomp_waiter *w, int val);
/* The same for a context, which does not run; initialises the waiter. */
extern bool gomp_park_context (struct gomp_waiter *, struct gomp_context *, int *addr, int val);
/* Takes up to count waiters on addr out of the lot; returns them as a list.  addr is a key only, never
 * read: the memory may be gone.  The caller has changed what they wait for before. */
extern struct gomp_waiter *gomp_lot_take (int *addr, int count);
/* Could a waiter on addr be in the lot?  To be called after the change that it waits for, by a
 * seq_cst store or read-modify-write, or with a fence between. */
static inline bool gomp_lot_has_any (int *addr)
{
    return atomic_load(&gomp_lot_bucket(addr)->sleepers) > 0;
}

/* Sleeps until a waker sets w->word, or for timeout_ns (negative: without limit).  False: the time
 * is over.  Then the caller takes the waiter out of all lists, or, if a waker has done so, rests
 * again. */
extern bool gomp_waiter_rest (struct gomp_waiter *w, int64_t timeout_ns);
/* Lets a sleeping thread go on, with a hold or INV_HOLD_NONE. */
extern void gomp_waiter_wake (struct gomp_waiter *w, int hold);
/* For the child of a fork. */
extern void gomp_parking_forget (void);

#pragma GCC visibility pop
#endif
