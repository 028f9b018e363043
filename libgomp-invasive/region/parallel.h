/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parallel.h - how large a region of a certain function becomes: INVASIVE_TEAM (parallel.c), and
 * INVASIVE_TUNE (tuned_team.h).
 *
 * Upstream finds the size of a team without knowing what the team is to run, and asks
 * gomp_dynamic_max_threads (proc.c) for a limit when the program allows the size to vary.  So
 * the thread that begins a region says before which function it is for.
 */
#ifndef GOMP_PARALLEL_H
#define GOMP_PARALLEL_H 1

#include "libgomp.h"
#include "threads.h"
#include "tuned_team.h"
#include <stdatomic.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* Constant after the first use, when it is written. */
extern struct gomp_team_settings {
    bool varies;   /* adaptive or tuned */
    bool tuned;    /* INVASIVE_TUNE, in a process that is to be managed */
    bool adaptive; /* INVASIVE_TEAM=adaptive, in a process that is to be managed */
    bool dyn_ours; /* the program has not said itself that sizes may vary (OMP_DYNAMIC); adaptive mode has */
    /* The default team is one thread, since there is one core, or each has a few ranks: a region of one thread makes
     * the process join the resource manager all the same, and its thread is pinned. */
    bool single_threads_join;
} gomp_team_settings;
/* The limit for the region that the calling thread begins; 0: none. */
extern __thread unsigned gomp_team_limit __attribute__((tls_model("initial-exec")));
/* At the first use of OpenMP: read INVASIVE_TEAM and INVASIVE_TUNE. */
extern void gomp_team_initialize (void);
/* proc.c: at the first use of OpenMP, find the default size of teams if nothing else says one; then
 * all else that concerns the sizes of teams, which may print messages. */
extern void gomp_settle_default_team (void);
extern void gomp_settle_teams (void);
/* The default size is one for all threads of a process.  The first thread that needs it decides which
 * (proc.c): by GOMP_TEAM_LARGE the initial thread, by GOMP_TEAM_SMALL a thread that the program has
 * created, or a program that enables nested regions.  A process that was to be managed and is not has
 * GOMP_TEAM_SHARE, the rank's share of the cores, since it gets no core of another rank.  Afterwards it does
 * not change.  The thread's own control variables have the size that was decided when this returns.  Any
 * thread. */
enum gomp_team_default {
    GOMP_TEAM_OPEN,
    GOMP_TEAM_LARGE,
    GOMP_TEAM_SMALL,
    GOMP_TEAM_SHARE,
    GOMP_TEAM_DEFAULTS /* how many */
};
extern void gomp_decide_default_team (enum gomp_team_default);
/* Is this a default size that the runtime has chosen, so that limits leave room for such a team? */
extern bool gomp_team_is_default (unsigned nthreads);
/* Does the calling thread's default size need no decision any more? */
extern __thread bool gomp_team_default_known __attribute__((tls_model("initial-exec")));
/* The program is about to be told the default size: by omp_get_max_threads, or by a region. */
static inline void gomp_ensure_default_team (void)
{
    if (__builtin_expect(!gomp_team_default_known, 0))
        gomp_decide_default_team(GOMP_TEAM_LARGE);
}
/* Find it, and the tuned size.  requested: the num_threads clause, or 0.  Returns how many threads are to be
 * requested. */
extern unsigned gomp_team_vary (void (*fn) (void *), unsigned requested);

/* team.c: where the process can have few threads, makes them for a region that the calling thread is about to begin.
 * Returns the size that is to be requested: `requested`, or that of a default team for which there are threads. */
extern unsigned gomp_team_secure (unsigned requested);

/* A region of fn begins; returns how many threads are to be requested for it. */
static inline unsigned gomp_team_is_for (void (*fn) (void *), unsigned requested)
{
    if (requested == 0)
        gomp_ensure_default_team();
    if (__builtin_expect(gomp_team_settings.varies, 0))
        requested = gomp_team_vary(fn, requested);
    if (__builtin_expect(gomp_thread_supply.few_threads, 0))
        requested = gomp_team_secure(requested);
    return requested;
}

static inline unsigned gomp_resolve_for (void (*fn) (void *), unsigned requested, unsigned count)
{
    return gomp_resolve_num_threads(gomp_team_is_for(fn, requested), count);
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
