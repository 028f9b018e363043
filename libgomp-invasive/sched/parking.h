/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parking.h - the parking lot: threads asleep on addresses.
 *
 * gomp_park(addr, val) sleeps while *addr == val until gomp_unpark(addr, ...).  It is a
 * futex in user space, with two differences that malleability needs: a wake that meets
 * no sleeper makes no system call; and a woken thread of a managed process is not run
 * at once but when a core of the claim is free for it (workers.h).  The idea is WebKit's
 * parking lot: a hash of short lists, keyed by address, and no state in the words
 * themselves.
 */
#ifndef GOMP_PARKING_H
#define GOMP_PARKING_H 1

#include <libinvasive/base/futex.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* A sleeping thread.  Lives on its stack; is in the lot, or in the list of those ready
 * to run, or neither (then its waker is about to set `word`). */
struct gomp_context;
struct gomp_waiter {
    struct gomp_waiter *next;
    int *addr;
    int tid;
    int core;        /* that it held last and is pinned to, INV_HOLD_NONE if it is not */
    struct gomp_context *context; /* this is no thread but a context (context.h), or NULL */
    bool needs_hold; /* held a core when it went to sleep, so must get one to go on */
    /* written by the waker before word, read by the sleeper after it */
    int hold;
    enum gomp_pinning {
        GOMP_PIN_UNTOUCHED, /* the waker has left the thread where it was */
        GOMP_PIN_DONE,      /* has pinned it to the core of the hold */
        GOMP_PIN_FAILED     /* has tried */
    } pinning;
    /* enum gomp_waiting.  The sleeper sets ASLEEP by CAS, the waker GO by exchange (release;
     * partner: the sleeper's acquire loads).  Futex */
    _Atomic uint32_t word;
};

/* A waker makes a system call only for a thread that sleeps by now. */
enum gomp_waiting { GOMP_AWAKE, GOMP_GO, GOMP_ASLEEP };

/* Sleep while *addr == val, until unparked.  May return early; callers re-check. */
extern void gomp_park (int *addr, int val);
/* Wake up to count threads that sleep on addr.  addr is a key only, never read: the
 * memory may be gone.  The caller has changed what they wait for before. */
extern void gomp_unpark (int *addr, int count);
/* The same after a change by a seq_cst store or read-modify-write.  False: none of them needs a core, and
 * none has been called; contexts in the lists of carriers may wait for the change. */
extern bool gomp_unpark_sleepers (int *addr, int count);

/* Let a context, which does not run, wait here.  False: *addr is not val any more. */
extern bool gomp_park_context (struct gomp_waiter *, struct gomp_context *, int *addr, int val);

/* Sleeps until a waker sets w->word; then begins the hold that came with it. */
extern void gomp_waiter_sleep (struct gomp_waiter *w);
/* The same for a waiter in a queue of the ready, which it leaves when the time is over.  Then it
 * goes on as an unheld thread. */
extern void gomp_waiter_sleep_for (struct gomp_waiter *w, int64_t timeout_ns);
/* Lets a sleeping thread go on, with a hold or INV_HOLD_NONE. */
extern void gomp_waiter_wake (struct gomp_waiter *w, int hold);
/* For the child of a fork. */
extern void gomp_parking_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
