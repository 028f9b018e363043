/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * upstream.h - what differs between the releases of GCC that the overlay is built with.
 * upstream.sh (find_features) has looked up in the source what the release has.  The rest of the
 * overlay is the same for all releases.
 */
#ifndef GOMP_UPSTREAM_H
#define GOMP_UPSTREAM_H 1

#include "libgomp.h"
#include "upstream-features.h"

/* taskloop's strict modifier came with GCC 12; the bit is part of the binary interface. */
#ifndef GOMP_TASK_FLAG_STRICT
#define GOMP_TASK_FLAG_STRICT (1 << 14)
#endif

/* Functions of GCC 13 that the fork defines for every release; before 13 no header declares
 * them.  See newer.c. */
extern int omp_in_explicit_task (void);
extern void GOMP_taskwait_depend_nowait (void **depend);

/* The teams construct on the host, GCC 12 and later: how many teams, and which of them this thread
 * is in.  Before GCC 12 there was one league at a time, and a thread did not know its team's
 * number. */
struct gomp_league {
#if UPSTREAM_THREAD_HAS_TEAM_NUM
    unsigned num_teams, team_num;
#else
    char none;
#endif
};

static inline struct gomp_league gomp_league_of (const struct gomp_thread *thr)
{
#if UPSTREAM_THREAD_HAS_TEAM_NUM
    return (struct gomp_league){thr->num_teams, thr->team_num};
#else
    (void)thr;
    return (struct gomp_league){0};
#endif
}

static inline void gomp_league_join (struct gomp_thread *thr, struct gomp_league league)
{
#if UPSTREAM_THREAD_HAS_TEAM_NUM
    thr->num_teams = league.num_teams;
    thr->team_num = league.team_num;
#else
    (void)thr;
    (void)league;
#endif
}
#endif
