/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * help.h - threads that execute explicit tasks of an open region outside of its implicit tasks: free workers, bound
 * workers whose implicit task is over, and the master at the region's end.
 */
#ifndef GOMP_HELP_H
#define GOMP_HELP_H 1

#include "region.h"
#include "work_source.h"

#pragma GCC visibility push(hidden)
/* For free workers: tasks, if there is a vacant thread number to run them under, or a team thread
 * that sleeps in a barrier. */
extern const struct gomp_work_source gomp_explicit_tasks;
/* Execute explicit tasks of an open region as thread number `id`, whose implicit task is
 * over.  False: the region is closed. */
extern bool gomp_region_help (struct gomp_region *, uint32_t epoch, unsigned id);
extern void gomp_region_help_wanted (struct gomp_region *);
/* A task has been queued. */
static inline void gomp_region_tasks_queued (struct gomp_region *region)
{
    /* seq_cst: partner is gomp_region_no_tasks, which takes the hint back and then looks for tasks */
    if (__builtin_expect(!atomic_load(&region->help), 0))
        gomp_region_help_wanted(region);
}
/* A team thread that could execute any task has found none. */
extern void gomp_region_no_tasks (struct gomp_region *);
/* The master, at the region's end: run the implicit tasks that have not started, help with explicit ones, and wait
 * for the rest. */
extern void gomp_region_finish (struct gomp_region *);
#pragma GCC visibility pop
#endif
