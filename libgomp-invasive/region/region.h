/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * region.h - a parallel region as a collection of implicit tasks, counted by atomics.
 *
 * The idea: a region has a fixed number N of implicit tasks.  `tickets` counts the tasks that
 * no thread has started, `gate` the tasks that have not finished.  A worker takes a ticket, runs
 * that implicit task to completion as that thread number, takes the next; when there
 * is none left it subtracts what it has run from the gate, and that is its last access
 * to the team.  The region is over when the gate says so.  There is no barrier at either
 * end, and a worker that never came is never waited for.
 *
 * Two ways to hand implicit tasks out:
 *   elastic  by ticket, to whichever thread holds a core.  In managed processes; nested regions only where
 *            implicit tasks are contexts, so that a nested team is no more kernel threads.
 *   bound    implicit task i is assigned to worker i: in processes that are not managed, in other nested
 *            regions, and when thread-local data must stay with the thread number.
 *
 * Region structs are never freed (type-stable), so that a worker may look at one that
 * has just ended: the epoch in the ticket tells.
 */
#ifndef GOMP_REGION_H
#define GOMP_REGION_H 1

#include "libgomp.h"
#include "carrier.h"
#include "context.h"
#include "costs.h"
#include "history.h"
#include "tickets.h"
#include "upstream.h"
#include "workers.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* What each implicit task starts from; constant while the region is open. */
struct gomp_region_start {
    struct gomp_team *team;
    void (*fn) (void *);
    void *data;
    unsigned nthreads;
    struct gomp_task *parent;
    struct gomp_task_icv *icv; /* the parent's */
    struct gomp_taskgroup *taskgroup;
    struct gomp_thread_pool *pool;
    unsigned long nthreads_var; /* of the implicit tasks */
    char bind_var, bind;
    struct gomp_league league;
    unsigned level, active_level;
    uintptr_t def_allocator;
    unsigned master_place, partition_off, partition_len;
    bool master_holds_core;
};

enum { GOMP_VACANT_WORDS = 4 };

struct gomp_region {
    struct gomp_tickets tickets; /* implicit tasks not started */
    /* implicit tasks not finished << 32 | threads inside: the master, and helpers that
     * execute explicit tasks.  Over at (0, 1).  0: closed.  Subtracting is release,
     * the master's look acquire; a helper joins by CAS while it is not 0. */
    _Atomic uint64_t gate __attribute__((aligned(64)));
    /* the master sleeps on end_word when master_waits; raised by a thread that changes what the
     * master waits for (seq_cst both sides) */
    _Atomic int end_word, master_waits;
    _Atomic uint32_t epoch; /* of the open region; writer: master */
    /* start.fn, for the watchdog, which is never inside the gate (release; partner: look_at_work
     * in progress.c) */
    _Atomic (void (*) (void *)) fn;
    /* elastic: thread numbers (the first 256) whose implicit task has finished and under which no
     * thread executes tasks now.  Set and cleared by atomic or and and, from inside the gate. */
    _Atomic uint64_t vacant[GOMP_VACANT_WORDS];
    /* Idle workers look at `help` all the time, so its line is not written when a region opens: explicit tasks are
     * queued.  A hint, set by a thread that queues one, cleared by a thread that finds none; says nothing of a
     * region that is closed. */
    _Atomic bool help __attribute__((aligned(64)));
    _Atomic unsigned sleeping_members; /* in a barrier; seq_cst as `asleep` of gomp_team_tasks */
    /* Written by the master before the region opens; relaxed: a thread that is not inside the gate may read the value
     * of the next region that uses the struct */
    _Atomic bool elastic __attribute__((aligned(64)));
    bool registered;
    /* The region in which the master has begun this one; NULL: none.  Written by the master before the region opens;
     * relaxed: for a thread that has an implicit task of this region it is right, for others a hint.  A thread may see a
     * cycle of values that are out of date, which does not last: each region writes this when it opens, and stays open
     * as long as the regions within it */
    _Atomic(struct gomp_region *) outer;
    /* elastic, and implicit tasks but the master's run in contexts.  Written by the master, relaxed: a
     * late thread may take it for the next region's, and start an implicit task the other way */
    _Atomic bool light;
    /* Whether each core begins with implicit tasks that it has had before (tickets.apart) has been chosen by time
     * (gomp_history_prefers_apart).  Writer: the master before the region opens; the watchdog reads.  relaxed: a hint */
    _Atomic bool order_is_chosen;
    /* It is known to take less core time than a core that sleeps takes to come.  The master's, written
     * before the region opens */
    bool brief;
    /* An implicit task has waited in this use of the struct.  Set by its thread, relaxed */
    _Atomic bool waited;
    enum gomp_inside inside; /* what was known of the function when the region was opened */
    struct gomp_region_start start;
    struct gomp_worker **workers; /* bound: workers[1..nthreads-1] */
    struct gomp_region *next_free;
    _Atomic unsigned sleeping_helpers; /* bound workers parked while the region is open */
    _Atomic unsigned sleeps; /* times that its threads went to sleep inside (history.h); relaxed */
    uint64_t began_ns;       /* 0: this one is not timed.  The master's */
    struct gomp_cost cost;
};

extern struct gomp_region *gomp_region_alloc (void);
extern void gomp_region_free (struct gomp_region *);
/* Let idle workers look for tickets here, now and in later uses of the struct.  False: too many are registered. */
extern bool gomp_region_register (struct gomp_region *);
/* Is the region `of`, or a region nested in it?  Certain for a region that stays open meanwhile. */
extern bool gomp_region_is_within (struct gomp_region *, const struct gomp_region *of);
/* The region of the team, or, if that has one thread, of the innermost team around it that has more.  NULL: none.  The
 * team must not end meanwhile. */
extern struct gomp_region *gomp_region_around (const struct gomp_team *);
/* May implicit tasks run in contexts in this process? */
extern bool gomp_regions_may_be_light (void);

/* The master: open the region (start is filled in) and, at its end, run the implicit tasks that
 * have not started and wait for the rest. */
extern void gomp_region_open (struct gomp_region *, bool elastic);
extern void gomp_region_finish (struct gomp_region *);

/* Workers. */
extern bool gomp_tickets_left (void);
/* The same for a thread that looks all the time: without tickets that threads have put into shares. */
extern bool gomp_tickets_in_sight (void);
extern bool gomp_run_ticket (void);
static inline bool gomp_region_is_alone (struct gomp_region *region)
{
    return atomic_load_explicit(&region->tickets.alone, memory_order_relaxed);
}
/* The same of one region, in a context only: for a thread that waits in the middle of it. */
extern bool gomp_region_start_in_context (struct gomp_region *);
/* Does the calling thread, which has begun a region and is thread number 0, wait on addr for all
 * others of the region: at a barrier of the team, or at its end? */
extern bool gomp_region_waits_for_all (const int *addr);
/* In a context: run implicit tasks of the region.  False: there was none left. */
extern bool gomp_region_run_in_context (struct gomp_region *);
/* Are there any implicit tasks to start?  A hint. */
extern bool gomp_region_may_start (struct gomp_region *);
/* An implicit task of the region waits. */
static inline void gomp_region_waits (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->waited, memory_order_relaxed))
        atomic_store_explicit(&region->waited, true, memory_order_relaxed);
}
/* A reference keeps an open region, and its team, from ending. */
extern void gomp_region_ref (struct gomp_region *);
extern void gomp_region_unref (struct gomp_region *);
/* Count the implicit tasks that have ended on a carrier. */
extern void gomp_region_count_ended (struct gomp_ended *);
extern void gomp_region_run_bound (struct gomp_region *, unsigned id, struct gomp_worker *,
                                   int *seen);
/* Are there tasks that a core could be used for that comes now: is there a thread number to run
 * them under, or a thread that sleeps and has one? */
extern bool gomp_help_waiting (void);
extern bool gomp_help_tasks (void);
/* Wake up to `count` sleeping threads that could execute a task: the master at the end of the
 * region, workers that linger.  False: no such thread sleeps. */
extern bool gomp_region_call_helpers (struct gomp_region *, int count);
extern void gomp_region_help_wanted (struct gomp_region *);
/* A task has been queued. */
static inline void gomp_region_tasks_queued (struct gomp_region *region)
{
    /* seq_cst: partner is gomp_region_no_tasks, which takes the hint back and then looks for tasks */
    if (__builtin_expect(!atomic_load(&region->help), 0))
        gomp_region_help_wanted(region);
}
/* A member that could execute any task has found none. */
extern void gomp_region_no_tasks (struct gomp_region *);
/* Is the region of that epoch still open? */
extern bool gomp_region_is_open (struct gomp_region *, uint32_t epoch);
/* Visit the registered regions (progress.c). */
extern struct gomp_region *gomp_region_registered (unsigned index);
/* Has any ever been registered? */
extern bool gomp_regions_in_use (void);
extern void gomp_regions_forget (void);

/* places.c: where implicit task `id` runs: place + 1 (0: anywhere) and its partition. */
struct gomp_place_choice {
    unsigned place, partition_off, partition_len;
};
extern struct gomp_place_choice gomp_place_of (const struct gomp_region_start *, unsigned id);
extern void gomp_bind_self (unsigned place);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
