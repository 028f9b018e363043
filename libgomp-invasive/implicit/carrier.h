/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * carrier.h - which context (context.h) a kernel thread executes next.
 *
 * A carrier is a kernel thread that executes contexts.  Its own stack is the loop: a worker's loop
 * (workers.c), or the wait of the thread that began a region, at one of its barriers or its end.  From
 * there it switches to a context; when that context waits, it switches on to another one that is ready,
 * or back to the loop.
 *
 * Contexts that wait lie in the list of the carrier that they ran on.  That carrier looks whether what
 * they wait for has come, so that to open a barrier is a store.  Carriers that idle look into the
 * lists of other carriers.  Before a carrier gives its core up it publishes its list: contexts that wait
 * go to the parking lot like threads, and contexts that are ready, then or later, to one queue of the
 * process, from where any carrier takes them.
 */
#ifndef GOMP_CARRIER_H
#define GOMP_CARRIER_H 1

#include "current.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct gomp_region;

/* The value of gomp_thread_destructor in a thread that uses OpenMP as a carrier only, else its struct gomp_thread. */
#define GOMP_CARRIER_ONLY ((void *)1)

/* --- in a context */

/* Let other implicit tasks run until *addr is not val.  May return early. */
extern void gomp_context_wait (int *addr, int val);
/* Arrive at the barrier whose generation is at addr, and let other implicit tasks run until that is not val,
 * which has no flags set.  False: this is not the barrier of the context's own team, and nothing is done. */
extern bool gomp_context_arrive (int *addr, int val);
/* Let other implicit tasks run, unstarted ones first. */
extern void gomp_context_yield (void);
/* Can the loop of the caller's carrier go on, since what it waits for has come? */
extern bool gomp_context_is_in_the_way (void);
/* If so the loop goes on first: what the caller does next may depend on it, as when the caller has
 * opened a barrier, or may take long. */
extern void gomp_context_make_way (void);
/* Is there anything that this carrier could run in place of the caller? */
extern bool gomp_context_could_switch (void);
/* The same, or contexts that wait in the carrier's list, whether they could go on or not.
 * Cheap. */
extern bool gomp_context_has_others (void);
/* The same, or implicit tasks of the caller's region that have not been started. */
extern bool gomp_context_leaves_work (void);

/* --- in a carrier's loop */

enum gomp_start { GOMP_NO_MEMORY, GOMP_NOTHING_STARTED, GOMP_STARTED };
/* Start implicit tasks of the region in a context. */
extern enum gomp_start gomp_contexts_start (struct gomp_region *);
/* Run a context that is ready here, or in the queue of the process.  False: there is none. */
extern bool gomp_contexts_run (void);
/* The same with a context of another carrier's list, if this carrier has idled for a while. */
extern bool gomp_contexts_steal (void);
/* The same with a context that is not in this carrier's list.  After a yield, which is for others,
 * and for unheld threads. */
extern bool gomp_contexts_run_others (void);
/* Is a context ready?  Looks at other carriers now and then only. */
extern bool gomp_contexts_any_ready (void);
/* Has the context that ran last asked for implicit tasks to be started first? */
extern bool gomp_contexts_tickets_first (void);
/* For a thread that holds a core and waits for all others of the region that it has begun: run
 * contexts of the region until *addr is not val (true), or until it is time to sleep (false, as in
 * any other wait). */
extern bool gomp_contexts_run_until (int *addr, int val);
/* The same for that thread at the barrier of the region's team, at which it arrives by this; may return
 * before the barrier is open.  False: nothing is done. */
extern bool gomp_carrier_arrive (struct gomp_region *, int *addr, int val);
/* For that thread when it has arrived and finds no explicit task to run: starts and resumes
 * implicit tasks of the region until *addr is not val, or there is none that could run. */
extern void gomp_carrier_run_unarrived (struct gomp_region *, int *addr, int val);

/* --- anywhere */

/* Count the arrivals at a barrier that the calling carrier has not counted yet. */
extern void gomp_carrier_count_arrivals (void);

/* Publishes the list of the calling carrier: before its core is given up, or its loop is left.
 * True: some of its contexts are ready. */
extern bool gomp_contexts_publish (void);
/* The calling thread is about to sleep for long: other carriers may use the stacks that it keeps. */
extern void gomp_carrier_rest (void);
/* The calling thread ends. */
extern void gomp_carrier_leave (void);
/* Is there a context that is ready?  Looks at all carriers. */
extern bool gomp_contexts_waiting (void);

/* What the watchdog sees. */
struct gomp_carriers_view {
    uint64_t switches;          /* by carriers that hold a core */
    unsigned ready;             /* contexts that could run and do not */
    struct gomp_region *region; /* of one of them */
};
extern struct gomp_carriers_view gomp_carriers_inspect (void);
/* For the child of a fork: of all contexts only the caller's is left. */
extern void gomp_carriers_forget (void);
#pragma GCC visibility pop
#endif
