/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * costs.h - what teams cost, by outlined function, for `invade --report` (libinvasive/table/record.h).
 *
 * Numbers of regions, threads and barriers are exact.  Times and switches are estimated from
 * samples, each of which stands for all since the one before it:
 *   - about every 12th region of a function is timed, and the first 16 and long ones all;
 *   - the code between two barriers is timed for one of 64 barriers, for all threads of the team;
 *   - of switches from the code of one context to that of another, one of 64 is timed.
 * Without a report this is a load and a branch for each region, and for each barrier.
 */
#ifndef GOMP_COSTS_H
#define GOMP_COSTS_H 1

#include "libgomp.h"
#include "process.h"

#pragma GCC visibility push(hidden)

struct gomp_region;

/* --- regions: the master, before other threads can start implicit tasks, and when all have ended */

/* The region is about to open.  With a record it is counted from now on (region->cost). */
extern void gomp_cost_region_opens (struct gomp_region *);
/* The region, which is counted, has ended: its numbers and times go to the record. */
extern void gomp_cost_region_ends (struct gomp_region *);
/* A region begins that is inside of no other; its size is `nthreads`. */
extern void gomp_cost_team (unsigned nthreads);

/* --- code: the thread of an implicit task leaves the code of the program, or comes to it */

/* (Its end at a barrier: gomp_barrier_wait_start.) */
extern void gomp_cost_code_begins (gomp_barrier_t *);
static inline void gomp_code_begins (gomp_barrier_t *bar)
{
    if (__builtin_expect(bar->counted, 0))
        gomp_cost_code_begins(bar);
}
static inline void gomp_code_ends (gomp_barrier_t *bar)
{
    if (__builtin_expect(bar->counted, 0))
        gomp_cost_code_ends(bar);
}

/* The child of a fork has a record of its own, or none. */
extern void gomp_costs_forget (void);

#pragma GCC visibility pop
#endif
