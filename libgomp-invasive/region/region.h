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
#include "sleepers.h"
#include "spinlock.h"
#include "tickets.h"
#include "upstream.h"
#include <libinvasive/base/assertion.h>

#pragma GCC visibility push(hidden)

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

/* Do implicit tasks of a function wait inside the region, for each other or for locks? */
enum gomp_inside { GOMP_INSIDE_UNKNOWN, GOMP_NEVER_WAITS, GOMP_WAITS };

struct gomp_cost_sampling;
/* What costs.h counts of an open region.  Written by its master before other threads are in it. */
struct gomp_cost {
    struct inv_function *of; /* NULL: this region is not counted */
    struct gomp_cost_sampling *sampling;
    uint64_t began_ns;   /* 0: it is not timed */
    uint64_t switches;   /* of all carriers when it began; of a region that is timed */
    unsigned generation; /* of the team's barrier when it began */
    bool full;           /* the code before its first barriers is timed all */
};

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
    /* Explicit tasks are queued.  A hint: set by a thread that queues one, cleared by a thread that
     * finds none; says nothing of a region that is closed.  Idle workers poll it, so its cache line
     * is not written when a region opens. */
    _Atomic bool help __attribute__((aligned(64)));
    _Atomic unsigned barrier_sleepers; /* team threads; seq_cst, as `asleep` of gomp_team_tasks */
    /* Written by the master before the region opens; relaxed: a thread that is not inside the gate may read the value
     * of the next region that uses the struct */
    _Atomic bool elastic __attribute__((aligned(64)));
    bool registered;
    /* The region in which the master has begun this one; NULL: none.  Written by the master before the region opens;
     * relaxed: for a thread that has an implicit task of this region it is right, for others a hint.  A thread may see a
     * cycle of values that are out of date, which does not last: each region writes this when it opens, and stays open
     * as long as the regions within it */
    _Atomic(struct gomp_region *) outer;
    /* The region is elastic, and all implicit tasks but the master's run in contexts.  Writer: the
     * master.  relaxed: a late thread may read the value of the next region that uses the struct,
     * and start an implicit task the other way */
    _Atomic bool light;
    /* Whether each core begins with implicit tasks that it has had before (tickets.apart) has been chosen by time
     * (gomp_history_prefers_apart).  Writer: the master before the region opens; the watchdog reads.  relaxed: a hint */
    _Atomic bool order_is_chosen;
    /* The region is known to take less core time than it takes to wake a sleeping core.  Writer:
     * the master, before there are tickets */
    bool brief;
    /* An implicit task has waited inside the region.  Set by its thread, relaxed */
    _Atomic bool waited;
    enum gomp_inside inside; /* what was known of the function when the region was opened */
    struct gomp_region_start start;
    struct gomp_worker **workers; /* bound: workers[1..nthreads-1] */
    struct gomp_region *next_free;
    _Atomic unsigned sleeping_helpers; /* bound workers parked while the region is open */
    _Atomic unsigned sleeps; /* times that its threads went to sleep inside (history.h); relaxed */
    uint64_t began_ns;       /* 0: the region is not timed.  The master's */
    unsigned blas;           /* what gomp_blas_restrict has returned.  The master's */
    struct gomp_cost cost;
};

/* The gate: implicit tasks that have not finished, and threads inside. */
#define GOMP_UNFINISHED_ONE (UINT64_C(1) << 32)
#define GOMP_INSIDE_ONE UINT64_C(1)

/* Regions that idle workers look at.  Its elements are set under the lock, by masters that make a struct of a region, and read without; NULL: none.  Both they and
 * `high` stay as they are once set: the struct of a region that is over is used again for another one. */
extern struct gomp_registry {
    _Atomic unsigned high;
    _Atomic(struct gomp_region *) region[GOMP_REGIONS_REGISTERED];
    struct gomp_spinlock lock __attribute__((aligned(64)));
    /* Structs that no region uses: registered ones, which are used first, and others. */
    struct gomp_region *free_registered, *free_others;
} gomp_registry;

/* A struct that no region uses, if possible a registered one, else a new one. */
extern struct gomp_region *gomp_region_alloc (void);
/* The region is over: keeps its struct for another one. */
extern void gomp_region_free (struct gomp_region *);
/* Let idle workers look for tickets here, now and in later uses of the struct.  False: too many are registered. */
extern bool gomp_region_register (struct gomp_region *);
/* Has any ever been registered? */
static inline bool gomp_regions_in_use (void)
{
    return atomic_load_explicit(&gomp_registry.high, memory_order_relaxed) > 0;
}
/* Visit the registered regions. */
static inline struct gomp_region *gomp_region_registered (unsigned index)
{
    if (index >= atomic_load_explicit(&gomp_registry.high, memory_order_acquire))
        return NULL;
    return atomic_load_explicit(&gomp_registry.region[index], memory_order_acquire);
}
/* Calls fn for registered regions until it returns true.  False: it never did. */
static inline bool gomp_any_region (bool (*fn) (struct gomp_region *))
{
    struct gomp_region *region;
    unsigned high = atomic_load_explicit(&gomp_registry.high, memory_order_relaxed);
    for (unsigned i = 0; i < high; i++)
        if ((region = gomp_region_registered(i)) && fn(region))
            return true;
    return false;
}
/* For the child of a fork. */
extern void gomp_regions_forget (void);

/* Is the region `of`, or a region nested in it?  Certain for a region that stays open meanwhile. */
extern bool gomp_region_is_within (struct gomp_region *, const struct gomp_region *of);
/* The region of the team, or, if that has one thread, of the innermost team around it that has more.  NULL: none.  The
 * team must not end meanwhile. */
extern struct gomp_region *gomp_region_around (const struct gomp_team *);
/* Does the calling thread, which has begun a region and is thread number 0, wait on addr for all
 * others of the region: at a barrier of the team, or at its end? */
extern bool gomp_region_waits_for_all (const int *addr);
/* Is the region of that epoch still open? */
extern bool gomp_region_is_open (struct gomp_region *, uint32_t epoch);

/* --- tickets */

/* Is the region left to its master's core, as far as is known? */
static inline bool gomp_region_is_alone (struct gomp_region *region)
{
    return atomic_load_explicit(&region->tickets.alone, memory_order_relaxed);
}
/* Has the region tickets that any core may take, as far as is known? */
static inline bool gomp_region_has_tickets (struct gomp_region *region)
{
    return !gomp_region_is_alone(region) && gomp_tickets_any(&region->tickets);
}
/* Has any registered region such tickets? */
extern bool gomp_tickets_left (void);
/* The same for a thread that looks all the time: without tickets that threads have put into
 * portions. */
extern bool gomp_tickets_in_sight (void);
/* Are there any implicit tasks to start in contexts?  A hint. */
static inline bool gomp_region_may_start (struct gomp_region *region)
{
    return region->light && gomp_tickets_any(&region->tickets);
}

/* --- the gate */

/* Subtract from the gate; wake the master if it waits for that. */
static inline void gomp_region_leave (struct gomp_region *region, uint64_t what)
{
    /* seq_cst (and acq_rel for the work done): partner is wait_for_end, which announces
     * that it waits before it looks at the gate. */
    uint64_t now = atomic_fetch_sub(&region->gate, what) - what;
    inv_assert(now + what >= what && (uint32_t)(now + what) >= (uint32_t)what); /* neither count is below 0 */
    inv_assert((uint32_t)now > 0); /* the master is inside until it closes the gate */
    if (now == GOMP_INSIDE_ONE && atomic_load(&region->master_waits)) {
        atomic_fetch_add(&region->end_word, 1);
        gomp_unpark((int *)&region->end_word, 1);
    }
}
/* A thread that is inside the gate keeps the team from ending.  False: the region is closed. */
extern bool gomp_region_enter (struct gomp_region *);
/* The same of a region of which the caller knows that it is open. */
extern void gomp_region_ref (struct gomp_region *);
extern void gomp_region_unref (struct gomp_region *);

/* --- thread numbers whose implicit tasks are over */

static inline void gomp_number_set (uint64_t *numbers, unsigned id)
{
    inv_assert(id < GOMP_TICKETS_MOST);
    if (id < 64 * GOMP_VACANT_WORDS)
        numbers[id / 64] |= UINT64_C(1) << id % 64;
}
/* From now on other threads may run explicit tasks under these numbers. */
extern void gomp_numbers_vacate (struct gomp_region *, const uint64_t *numbers);
/* Takes a vacant number for the calling thread; -1: there is none. */
extern int gomp_number_take_vacant (struct gomp_region *);

/* Implicit tasks of a region that have ended on a carrier and have not been counted, and their thread
 * numbers. */
struct gomp_ended {
    struct gomp_region *region;
    unsigned count;
    uint64_t numbers[GOMP_VACANT_WORDS];
};
/* Tells the region of the implicit tasks that have ended here, at least one; none are in it afterwards. */
extern void gomp_region_count_ended (struct gomp_ended *);

/* --- waiting inside */

/* An implicit task of the region waits. */
static inline void gomp_region_waits (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->waited, memory_order_relaxed))
        atomic_store_explicit(&region->waited, true, memory_order_relaxed);
}
/* The calling thread goes to sleep on addr: count it if that is in the middle of a region. */
extern void gomp_region_sleeps (const int *addr);
#pragma GCC visibility pop
#endif
