/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.h - handing out the implicit tasks of an elastic region.
 *
 * Where there are more than two cores, and one for each implicit task, or implicit tasks are short or wait for
 * each other, they are dealt to the process's own cores when the region opens: each core's share is a range
 * of neighbouring thread numbers, the same ones in every region as long as the cores, that of the master among
 * them, and the number of threads are the same.  What an implicit task has left in a core's caches, or
 * has been given memory for near a core, is there for the next region's.  The thread on a core takes from the front
 * of the core's share without disturbing others; they, when they have nothing left to do, take from its
 * other end.
 *
 * Else one word is the range of those that have not been taken.  Where implicit tasks are long each is
 * taken from there by itself, in order: a program may be made for that, whose threads wait for the one
 * before.  Where the function's are known to be shorter than it
 * takes to bring that word from another core (history.h), a thread takes a core's fair share at
 * once, every second core from the range's end, and puts all but the first into the core's share.
 *
 * Either way an implicit task that waits for another one never keeps that from being started.
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
    GOMP_TICKET_SHARES = 64 /* neighbouring cores have one together where there are more */
};

/* Cores among which implicit tasks are dealt: so many to each share, beginning with `first`, which is that
 * of the master's core. */
struct gomp_homes {
    unsigned first;
    unsigned char cores[GOMP_TICKET_SHARES];
};

struct gomp_tickets {
    /* epoch << 32 | first << 16 | end: nobody has taken implicit tasks first .. end - 1.  Written
     * by the master when the region opens (release; partner: the takers' acquire CAS), then
     * cut down by takers from either end. */
    _Atomic uint64_t left __attribute__((aligned(64)));
    /* Written by the master before `left`; relaxed: a late thread may look at the next region's. */
    _Atomic uint32_t nthreads;
    _Atomic uint32_t task_ns; /* what one takes, 0: not known */
    /* Whatever they take, a core's fair share is taken at once if they are not dealt: they wait for each
     * other, so all of them must be started first. */
    _Atomic bool together;
    _Atomic bool dealt; /* all are in shares from the beginning */
    /* Bit i: there may be tickets in share i.  Set (relaxed) before they are put there; cleared when the
     * region opens, before `left` is written.  If they are dealt: written by the master before `left`, and
     * a bit is cleared by the thread that takes the last one of the share, before the region can end. */
    _Atomic uint64_t shared;
    /* Like `left`: put by the thread on the share's core, when it is empty, or by the master (release);
     * taken by CAS (acquire): by that thread from the front, by others from the back.  The epoch keeps a
     * thread that has slept from taking a ticket of another region. */
    struct gomp_ticket_share {
        _Atomic uint64_t range __attribute__((aligned(64)));
    } share[GOMP_TICKET_SHARES];
};

/* The share of a core, or GOMP_TICKET_SHARES: none. */
static inline unsigned gomp_share_of (int seat, unsigned ncores)
{
    if (seat < 0)
        return GOMP_TICKET_SHARES;
    unsigned share = (unsigned)seat;
    if (ncores > GOMP_TICKET_SHARES)
        share = share * GOMP_TICKET_SHARES / ncores;
    return share < GOMP_TICKET_SHARES ? share : GOMP_TICKET_SHARES;
}

/* Are implicit tasks of that length taken several at once?  0: it is not known. */
extern bool gomp_tickets_are_short (uint32_t task_ns);
/* nthreads - 1 implicit tasks, all but the master's, are there to be taken: by any thread, or, if homes is not
 * NULL, from the shares of these cores; there is one at least. */
extern void gomp_tickets_open (struct gomp_tickets *, uint32_t epoch, uint32_t nthreads,
                               uint32_t task_ns, bool together, const struct gomp_homes *);
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

/* Are there any, but for those that threads have put into shares?  A thread that spins may look at that all
 * the time. */
static inline bool gomp_tickets_in_view (struct gomp_tickets *t)
{
    return gomp_tickets_in(atomic_load_explicit(&t->left, memory_order_relaxed)) > 0 ||
           (atomic_load_explicit(&t->dealt, memory_order_relaxed) &&
            atomic_load_explicit(&t->shared, memory_order_relaxed) != 0);
}

/* How many of the epoch's there are; may miss some that are on their way into a share. */
extern uint32_t gomp_tickets_count (struct gomp_tickets *, uint32_t epoch);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
