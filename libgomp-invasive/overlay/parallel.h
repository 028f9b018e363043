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

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* INVASIVE_TEAM=adaptive, in a process that is to be managed.  Constant after start. */
extern bool gomp_team_adaptive;
/* The program has not said itself that sizes may vary (OMP_DYNAMIC); adaptive mode has. */
extern bool gomp_team_dyn_ours;
/* The limit for the region that the calling thread begins; 0: none. */
extern __thread unsigned gomp_team_limit __attribute__((tls_model("initial-exec")));
/* proc.c: make a default team size no larger than OMP_THREAD_LIMIT lets teams become. */
extern void gomp_limit_default_team (void);
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
