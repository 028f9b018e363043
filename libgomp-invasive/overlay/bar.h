/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * bar.h - the team barrier: implicit tasks wait here for each other inside a region.  One word
 * tells waiting threads of explicit tasks.  A region's end is not a barrier
 * (region.h).  Replaces config/linux/bar.h; the names are those that the rest of
 * libgomp calls.
 */
#ifndef GOMP_BARRIER_H
#define GOMP_BARRIER_H 1

#include "current.h"
#include "mutex.h"
#include "task_own.h"
#include "use.h"

struct gomp_region;
struct gomp_team;

typedef struct {
    /* mostly read while threads wait: */
    unsigned total __attribute__((aligned(64)));
    /* A counter in the high bits, the flags below in the low ones.  Threads wait for it to
     * change.  Writers: the thread that opens the barrier (release; partner: the acquire loads
     * of waiting threads), and threads that set a flag, by an atomic or. */
    unsigned generation;
    bool counted; /* the region is in the report (costs.h); written by its master before it opens */
    struct gomp_region *region; /* the team's region while it is open, NULL for artificial
                                   teams and teams of one */
    unsigned awaited __attribute__((aligned(64))); /* threads still to arrive; acq_rel */
} gomp_barrier_t;

typedef unsigned int gomp_barrier_state_t;

#define BAR_TASKS 1            /* in generation: this region has explicit tasks */
#define BAR_WAS_LAST 1         /* in a state: the caller was the last to arrive */
#define BAR_WAITING_FOR_TASK 2 /* all have arrived, tasks are not complete */
#define BAR_CANCELLED 4
#define BAR_INCR 8

static inline void gomp_barrier_init (gomp_barrier_t *bar, unsigned count)
{
    bar->total = count;
    bar->awaited = count;
    bar->generation = 0;
    bar->counted = false;
    bar->region = NULL;
}

static inline void gomp_barrier_destroy (gomp_barrier_t *bar)
{
    (void)bar;
}

/* The implicit task that calls this waits until all have arrived, and all explicit tasks are
 * complete. */
extern void gomp_team_barrier_wait (gomp_barrier_t *);
/* So many threads have arrived, which have not been counted before. */
extern void gomp_barrier_arrived (gomp_barrier_t *, unsigned count);
/* The same wait, of a thread that has arrived: by gomp_barrier_wait_start, which returned the
 * state. */
extern void gomp_team_barrier_wait_end (gomp_barrier_t *, gomp_barrier_state_t);
/* The two waits at a barrier that a thread can cancel.  True: one has. */
extern bool gomp_team_barrier_wait_cancel (gomp_barrier_t *);
extern bool gomp_team_barrier_wait_cancel_end (gomp_barrier_t *, gomp_barrier_state_t);
/* Cancels the team's barrier, and wakes the threads that wait there. */
extern void gomp_team_barrier_cancel (struct gomp_team *);
/* All have arrived and all tasks are complete.  Several threads may find that out; `generation` is
 * what the caller has seen. */
extern void gomp_barrier_open (gomp_barrier_t *, unsigned generation);

/* The calling thread leaves the code of the program, in a region that is counted (costs.h). */
extern void gomp_cost_code_ends (gomp_barrier_t *);

/* Arrive.  acq_rel: what every thread did before the barrier happens before what any
 * does after it (and it is OpenMP's implied flush). */
static inline gomp_barrier_state_t gomp_barrier_wait_start (gomp_barrier_t *bar)
{
    if (__builtin_expect(bar->counted, 0))
        gomp_cost_code_ends(bar);
    unsigned state = __atomic_load_n(&bar->generation, MEMMODEL_ACQUIRE);
    state &= -BAR_INCR | BAR_CANCELLED;
    if (__atomic_sub_fetch(&bar->awaited, 1, MEMMODEL_ACQ_REL) == 0)
        state |= BAR_WAS_LAST;
    return state;
}

static inline gomp_barrier_state_t gomp_barrier_wait_cancel_start (gomp_barrier_t *bar)
{
    return gomp_barrier_wait_start(bar);
}

static inline bool gomp_barrier_last_thread (gomp_barrier_state_t state)
{
    return state & BAR_WAS_LAST;
}

static inline unsigned gomp_barrier_flags (gomp_barrier_t *bar)
{
    return __atomic_load_n(&bar->generation, MEMMODEL_ACQUIRE);
}

static inline bool gomp_team_barrier_cancelled (gomp_barrier_t *bar)
{
    return __builtin_expect((gomp_barrier_flags(bar) & BAR_CANCELLED) != 0, 0);
}
#endif
