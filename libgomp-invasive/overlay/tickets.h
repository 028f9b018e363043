/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.h - handing out the implicit tasks of an elastic region.
 *
 * One word is the range of those that nobody has taken.  Where implicit tasks are long each is
 * taken from there by itself, in order.  Where the function's are known to be shorter than it
 * takes to bring that word from another core (history.h), a thread takes a core's fair share at
 * once, every second core from the range's end, and puts all but the first into a share that
 * goes with its core: it takes the rest from there without disturbing others, and they, when
 * they have nothing left to do, from the share's other end.  So an implicit task that waits for
 * another one never keeps that from being started.
 */
#ifndef GOMP_TICKETS_H
#define GOMP_TICKETS_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

enum {
    GOMP_TICKETS_MOST = 4096, /* implicit tasks of an elastic region: 16 bits below must do */
    GOMP_TICKET_SHARES = 16
};

struct gomp_tickets {
    /* epoch << 32 | first << 16 | end: nobody has taken implicit tasks first .. end - 1.  Written
     * by the master when the region opens (release; partner: the takers' acquire CAS), then
     * cut down by takers from either end. */
    _Atomic uint64_t left __attribute__((aligned(64)));
    /* Written by the master before `left`; relaxed: a late thread may look at the next region's. */
    _Atomic uint32_t nthreads;
    _Atomic uint32_t task_ns; /* what one takes, 0: not known */
    /* Whatever they take, a core's fair share is taken at once: they wait for each other, so all of
     * them must be started first. */
    _Atomic bool together;
    /* Bit i: there may be tickets in share i.  Set (relaxed) before they are put there; cleared when the
     * region opens, before `left` is written. */
    _Atomic uint32_t shared;
    /* Like `left`: put by the thread on the share's core, when it is empty (release), taken by CAS
     * (acquire): by that thread from the front, by others from the back.  The epoch keeps a
     * thread that has slept from taking a ticket of another region. */
    struct gomp_ticket_share {
        _Atomic uint64_t range __attribute__((aligned(64)));
    } share[GOMP_TICKET_SHARES];
};

/* Has the core a share of its own? */
static inline bool gomp_seat_has_share (int seat)
{
    return seat >= 0 && seat < GOMP_TICKET_SHARES;
}

/* nthreads - 1 implicit tasks, all but the master's, are there to be taken: from the share of this seat,
 * if it is one that has a share. */
extern void gomp_tickets_open (struct gomp_tickets *, uint32_t epoch, uint32_t nthreads,
                               uint32_t task_ns, bool together, int seat);
/* Take one; for the thread that has the seat.  With it the region cannot end before the
 * taker has counted it done. */
extern bool gomp_ticket_take (struct gomp_tickets *, int seat, unsigned *id);
/* Are there any, those in shares included?  A hint: there may be some on their way into a share.
 * Who has put them there then calls gomp_want_cores, for those who have looked before. */
extern bool gomp_tickets_any (struct gomp_tickets *);
/* The same for one region only. */
extern bool gomp_tickets_any_of (struct gomp_tickets *, uint32_t epoch);

/* How many the word `left` speaks of. */
static inline uint32_t gomp_tickets_in (uint64_t left)
{
    return (uint32_t)(uint16_t)left - (uint16_t)(left >> 16);
}

/* Those that are not in shares: what a spinning thread may look at all the time. */
static inline uint32_t gomp_tickets_unshared (struct gomp_tickets *t)
{
    return gomp_tickets_in(atomic_load_explicit(&t->left, memory_order_relaxed));
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
