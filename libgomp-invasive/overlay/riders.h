/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * riders.h - threads that compute without a hold, beside those that hold cores.
 *
 * The watchdog lets threads run so when those that hold cores seem to get nowhere (progress.h).
 * Often they do get somewhere, only slowly: implicit tasks may take seconds.  So a rider is
 * remembered: a core that becomes free, or that arrives, is given to it while it computes (it is
 * moved there, and finds out at its next scheduling point), and it is moved off a core that this
 * process does not hold any more.
 */
#ifndef GOMP_RIDERS_H
#define GOMP_RIDERS_H 1

#include "process.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

struct gomp_rider;
/* Of the calling thread, NULL when it does not ride. */
extern __thread struct gomp_rider *gomp_riding __attribute__((tls_model("initial-exec")));
#define gomp_riding GOMP_OWN(gomp_riding)
/* How many ride and have been given no hold.  Polled; a hint. */
extern _Atomic unsigned gomp_riders_waiting;

/* The caller goes on without a hold. */
extern void gomp_ride (void);
/* A core for the i-th of `count` threads that the caller is about to wake to ride, INV_HOLD_NONE:
 * any.  The caller's own comes last: who wakes there may take it from the caller at once. */
extern int gomp_rider_core (unsigned i, unsigned count);
/* A scheduling point of a rider: true when it has been given a hold, and rides no more. */
extern bool gomp_ride_check (void);
/* The caller does not compute any more.  True when it holds a core after all. */
extern bool gomp_ride_end (void);
/* Gives the hold to a rider.  False: none waits. */
extern bool gomp_rider_place (int hold);
/* The hold is given up: moves riders off its core. */
extern void gomp_riders_leave (int hold);
/* See to riders whose core others have taken; by the watchdog. */
extern void gomp_riders_look (void);
extern void gomp_riders_forget (void);

/* Does the calling thread hold a core? */
static inline bool gomp_holds_core (void)
{
    return inv_hold != INV_HOLD_NONE || (__builtin_expect(gomp_riding != NULL, 0) &&
                                         gomp_ride_check());
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
