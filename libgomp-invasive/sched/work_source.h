/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * work_source.h - sources of work: what workers, the idle policy and the watchdog know of regions and tasks.
 *
 * A source says whether it has work that no thread has taken, and runs some of it in the calling thread.
 * It is asked by threads that have nothing to do, or are about to give their cores up, and when the process
 * begins or ceases to ask for cores.
 */
#ifndef GOMP_WORK_SOURCE_H
#define GOMP_WORK_SOURCE_H 1

#include <stdbool.h>

struct inv_task_point;

enum gomp_run {
    GOMP_RUN_NEXT,      /* whatever is best for this core */
    GOMP_RUN_UNSTARTED, /* unstarted work before other work: threads that sleep may wait for it */
    GOMP_RUN_STOLEN     /* work that another thread keeps for itself, if the caller has idled */
};

struct gomp_work_source {
    /* Is there work that no thread has taken?  A hint. */
    bool (*waits) (void);
    /* Could the calling thread, which idles, begin some?  Polled: cheap, and may miss some. */
    bool (*in_sight) (void);
    /* Is there any that has not been started? */
    bool (*unstarted) (void);
    /* Is there any for a thread without a hold?  Looks into every list and queue. */
    bool (*unheld_may_run) (void);
    /* Has the work that the calling thread ran last asked for GOMP_RUN_UNSTARTED?  Clears that. */
    bool (*asks_for_unstarted) (void);
    /* Run some.  False: there was none. */
    bool (*run) (enum gomp_run);
    /* The calling thread is about to give its core up: leaves the work that it has kept for itself
     * to other threads.  True: some of that could run. */
    bool (*publish) (void);
    /* The calling thread, which has a hold, is about to sleep until *addr changes. */
    void (*sleeps) (const int *addr);
    /* The calling thread is about to sleep for long. */
    void (*rest) (void);
    /* The calling thread ends. */
    void (*leave) (void);
    /* The program calls sched_yield, see inv_give_way.yield. */
    bool (*yield) (void);
    /* Has there ever been any?  A hint. */
    bool (*in_use) (void);
    /* What a thread may run that waits outside OpenMP; NULL: nothing. */
    const struct inv_task_point *task_point;
};

#pragma GCC visibility push(hidden)
/* Implicit tasks cannot go on without a hold.  Explicit tasks can be run by other threads of their team. */
extern struct gomp_work_sources {
    const struct gomp_work_source *implicit, *explicit; /* written when the library is loaded */
} gomp_work_sources;
/* For a source that lacks something. */
extern bool gomp_work_source_has_none (void);
extern void gomp_work_source_keeps_none (void);
extern void gomp_work_source_ignores (const int *addr);
/* When the library is loaded, before there are workers. */
extern void gomp_work_sources_set (const struct gomp_work_source *of_implicit, const struct gomp_work_source *of_explicit);
#pragma GCC visibility pop
#endif
