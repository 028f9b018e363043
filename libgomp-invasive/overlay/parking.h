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

#include <libinvasive/futex.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* A sleeping thread.  Lives on its stack; is in the lot, or in the list of those ready
 * to run, or neither (then its waker is about to set ). */
struct gomp_waiter {
    struct gomp_waiter *next;
    int *addr;
    int tid;
    bool needs_seat; /* had a seat when it went to sleep, so must get one to go on */
    /* written by the waker before word, read by the sleeper after it */
    int seat;
    bool pinned;
    _Atomic uint32_t word; /* 0 asleep, 1 go; futex.  release/acquire */
};

/* Sleep while *addr == val, until unparked.  May return early; callers re-check. */
extern void gomp_park (int *addr, int val);
/* Wake up to count threads that sleep on addr.  addr is a key only, never read: the
 * memory may be gone.  The caller has changed what they wait for before. */
extern void gomp_unpark (int *addr, int count);

/* Sleep until someone sets w->word; then take the seat that came with it. */
extern void gomp_waiter_sleep (struct gomp_waiter *w);
/* Let a sleeping thread go on, with a seat or INV_SEAT_NONE. */
extern void gomp_waiter_wake (struct gomp_waiter *w, int seat);
/* For the child of a fork. */
extern void gomp_parking_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
