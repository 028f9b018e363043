/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parallel.h - how large a region of a certain function becomes: INVASIVE_TEAM (parallel.c).
 *
 * Upstream finds the size of a team without knowing what the team is to run, and asks
 * gomp_dynamic_max_threads (proc.c) for a limit when the program allows the size to vary.  So
 * whoever begins a region says before which function it is for.
 */
#ifndef GOMP_PARALLEL_H
#define GOMP_PARALLEL_H 1

#include "libgomp.h"
#include <stdatomic.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* INVASIVE_TEAM=adaptive, in a process that is to be managed.  Constant after start. */
extern bool gomp_team_adaptive;
/* The program has not said itself that sizes may vary (OMP_DYNAMIC); adaptive mode has. */
extern bool gomp_team_dyn_ours;
/* The limit for the region that the calling thread begins; 0: none. */
extern __thread unsigned gomp_team_limit __attribute__((tls_model("initial-exec")));
/* At the first use of OpenMP: read INVASIVE_TEAM. */
extern void gomp_team_initialize (void);
/* proc.c: at the first use of OpenMP, find the default size of teams if nothing else says one; then
 * all else that concerns the sizes of teams, which may print messages. */
extern void gomp_settle_default_team (void);
extern void gomp_settle_teams (void);
/* The control variables with which threads begin that the program has created itself.  Constant
 * after the first use. */
extern struct gomp_task_icv gomp_further_icv;
/* The program knows the default size, which may not change any more. */
extern _Atomic bool gomp_default_told;
static inline void gomp_tell_default_team (void)
{
    if (!atomic_load_explicit(&gomp_default_told, memory_order_relaxed))
        atomic_store_explicit(&gomp_default_told, true, memory_order_relaxed);
}
/* Nested regions have been enabled, in these variables: make the default size that of the cores,
 * unless the program has been told another one. */
extern void gomp_shrink_default_team (struct gomp_task_icv *);
/* Find it.  requested: the num_threads clause, or 0. */
extern void gomp_team_find_limit (void (*fn) (void *), unsigned requested);

static inline void gomp_team_is_for (void (*fn) (void *), unsigned requested)
{
    if (__builtin_expect(gomp_team_adaptive, 0))
        gomp_team_find_limit(fn, requested);
}

static inline unsigned gomp_resolve_for (void (*fn) (void *), unsigned requested, unsigned count)
{
    gomp_team_is_for(fn, requested);
    return gomp_resolve_num_threads(requested, count);
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
