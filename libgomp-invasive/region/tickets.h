/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.h - handing out the implicit tasks of an elastic region.
 *
 * Implicit tasks are dealt to the process's own cores when the region opens if there are more than
 * two cores and one of these holds:
 *   - there is a core for each implicit task;
 *   - implicit tasks are short;
 *   - implicit tasks wait for each other;
 *   - dealing has been quicker (history.h).
 * A region that is left to the master's core at first is dealt to that core, with any number of
 * cores.  So are short implicit tasks where the process owns only one of two cores.
 *
 * A core's portion is a range of neighbouring thread numbers.  The ranges stay the same while
 * the cores, the master's core and the number of threads do.  So what an implicit task has left in
 * a core's caches, or in memory near the core, is there in the next region.  The thread on a core
 * takes from the front of the core's portion.  Threads that have nothing left to do take from the
 * other end of other portions.
 *
 * While the cores stay the same no portion is written when a region opens: a portion from which no
 * thread has taken in this region is whole.  So the word that a core writes to take its own is in
 * its cache already.  The master writes one line that all threads read: the word with the epoch.
 *
 * Otherwise one word holds the range of implicit tasks that no thread has taken.  Nested regions
 * are always such.  Long implicit tasks are taken singly, in order, since threads may wait for the
 * one before.  If they are shorter than it takes to fetch that word from another core (history.h),
 * or wait for each other in contexts, a thread takes several at once, at most an equal part for
 * each core, and puts all but the first into its core's portion.  If they would be dealt with more
 * cores, every second core, but not the master's, takes from the range's end.
 *
 * Either way an implicit task that waits for another one never keeps that from being started.
 */
#ifndef GOMP_TICKETS_H
#define GOMP_TICKETS_H 1

#include <libinvasive/base/assertion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

enum {
    GOMP_REGIONS_REGISTERED = 64, /* regions that idle workers look at, at most */
    GOMP_TICKETS_MOST = 4096, /* implicit tasks of an elastic region: 16 bits below must do */
    GOMP_TICKET_PORTIONS = 64 /* neighbouring cores have one together where there are more */
};

/* Cores among which implicit tasks are dealt: how many cores each portion is for, beginning with
 * portion `first`, that of the master's core. */
struct gomp_dealt_cores {
    unsigned first;
    unsigned char cores[GOMP_TICKET_PORTIONS];
};

/* What each portion begins with in regions that are dealt to these cores.  Written by the master
 * when the cores or the number of threads have changed, while `left` says that the region is not
 * open yet: a thread that has read this between two looks at `left` which are the same has read
 * what belongs to that region (whole_portion). */
struct gomp_deal {
    struct gomp_dealt_cores to; /* the master's own */
    uint32_t nthreads;       /* likewise */
    _Atomic uint64_t portions __attribute__((aligned(64))); /* bit i: portion i begins with some */
    _Atomic uint32_t begins[GOMP_TICKET_PORTIONS];          /* first << 16 | end */
};

enum {
    GOMP_DEAL_ALL, /* to all own cores */
    GOMP_DEAL_ALONE, /* to that of the master */
    GOMP_DEALS
};

struct gomp_tickets {
    /* epoch << 32 | first << 16 | end: implicit tasks first .. end - 1 have not been taken.  Written
     * by the master when the region opens (release; partner: the takers' acquire CAS), then
     * cut down by takers from either end.  If they are dealt: GOMP_DEALT, and which of the deals, in place of
     * `first`, and never cut down. */
    _Atomic uint64_t left __attribute__((aligned(64)));
    /* Written by the master before `left`; relaxed: a late thread may look at the next region's. */
    _Atomic uint32_t nthreads;
    _Atomic uint32_t task_ns; /* time of one, 0: not known */
    /* Whatever task_ns is, a core takes its equal part at once if tickets are not dealt: implicit
     * tasks wait for each other, so all of them must be started first. */
    _Atomic bool together;
    /* Each core begins with implicit tasks that it has had in the region before. */
    _Atomic bool apart;
    /* The master's core has an odd number. */
    _Atomic bool odd_first;
    /* Tickets are left to the master's core (gomp_history_prefers_alone).  Cleared by the watchdog if the region
     * lasts; relaxed: a hint, and a late thread may look at the next region's. */
    _Atomic bool alone;
    /* If tickets are not dealt, bit i: there may be some in portion i.  Set (relaxed) before they
     * are put there; cleared when the region opens, before `left` is written. */
    _Atomic uint64_t filled;
    /* Index of the region struct in gomp_registry, which no other struct ever has.  Written before
     * the struct is registered. */
    unsigned number;
    struct gomp_deal deals[GOMP_DEALS];
    /* Like `left`, if the epoch is that of `left`.  Else no thread has taken from or put into this
     * portion in this region: it is empty, or whole if they are dealt.  Put by the thread on the
     * portion's core, when it is empty (release); taken by CAS (acquire): by that thread from the
     * front, by other threads from the back.  The epoch keeps a thread that has slept from taking
     * a ticket of another region: before a region ends, all that was dealt is taken, so the word of
     * each portion has changed. */
    struct gomp_ticket_portion {
        _Atomic uint64_t range __attribute__((aligned(64)));
    } portion[GOMP_TICKET_PORTIONS];
};

#define GOMP_DEALT UINT64_C(0x80000000)
enum { GOMP_DEAL_SHIFT = 16 };

static inline bool gomp_tickets_are_dealt (uint64_t left)
{
    return (left & GOMP_DEALT) != 0;
}

/* The portion of a core, or GOMP_TICKET_PORTIONS: none. */
static inline unsigned gomp_portion_of (int hold, unsigned ncores)
{
    if (hold < 0)
        return GOMP_TICKET_PORTIONS;
    unsigned portion = (unsigned)hold;
    if (ncores > GOMP_TICKET_PORTIONS)
        portion = portion * GOMP_TICKET_PORTIONS / ncores;
    inv_assert(ncores > 0);
    return portion < GOMP_TICKET_PORTIONS ? portion : GOMP_TICKET_PORTIONS;
}

/* Are implicit tasks of that length taken several at once?  0: it is not known. */
extern bool gomp_tickets_are_short (uint32_t task_ns);
struct gomp_ticket_ways {
    bool together, apart, odd_first; /* as in gomp_tickets */
    bool alone;           /* the only core is the master's */
};
/* nthreads - 1 implicit tasks, all but the master's, are there to be taken: by any thread, or, if `to` is not
 * NULL, from the portions of these cores; there is one at least. */
extern void gomp_tickets_open (struct gomp_tickets *, uint32_t epoch, uint32_t nthreads, uint32_t task_ns,
                               struct gomp_ticket_ways, const struct gomp_dealt_cores *);
/* Takes a ticket, for the thread that has the hold.  The region cannot end before the taker has
 * counted the ticket's implicit task as done.  more: the taker has run an implicit task of the
 * region that it has not counted yet.  Then, if tickets are dealt, also to its core, it gets one of
 * its own portion only: the region may be able to end before the taker has looked at the other
 * portions. */
extern bool gomp_ticket_take (struct gomp_tickets *, int hold, bool more, unsigned *id);
/* Are there any tickets, also in portions?  A hint: there may be some on their way into a portion.
 * The thread that has put them there then calls gomp_want_cores, for threads that looked before. */
extern bool gomp_tickets_any (struct gomp_tickets *);
/* The same for one region only. */
extern bool gomp_tickets_any_of (struct gomp_tickets *, uint32_t epoch);

/* The number of tickets in the word `left`, if they are not dealt. */
static inline uint32_t gomp_tickets_in (uint64_t left)
{
    return (uint32_t)(uint16_t)left - (uint16_t)(left >> 16);
}

/* Are there dealt tickets that this thread, which has the hold, should take now?  A hint. */
extern bool gomp_tickets_dealt_in_view (struct gomp_tickets *, uint64_t left, int hold);

/* Are there any tickets that threads have not put into portions?  A thread that spins may look at
 * that all the time: while there are none it reads one line that other threads write. */
static inline bool gomp_tickets_in_view (struct gomp_tickets *t, int hold)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_relaxed);
    bool any = gomp_tickets_are_dealt(left) ? gomp_tickets_dealt_in_view(t, left, hold)
                                            : gomp_tickets_in(left) > 0;
    return any && !atomic_load_explicit(&t->alone, memory_order_relaxed);
}

/* How many of the epoch's there are; may miss some that are on their way into a portion. */
extern uint32_t gomp_tickets_count (struct gomp_tickets *, uint32_t epoch);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
