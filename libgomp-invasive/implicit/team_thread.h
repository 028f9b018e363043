/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * team_thread.h - a kernel thread or context becomes a thread of a region's team, and runs the
 * implicit task of its thread number.
 */
#ifndef GOMP_TEAM_THREAD_H
#define GOMP_TEAM_THREAD_H 1

#include "region.h"

#pragma GCC visibility push(hidden)
/* The calling thread takes thread number `id` of the region's team, which no other thread has. */
extern void gomp_team_thread_become (struct gomp_region *, unsigned id);
/* The calling thread belongs to no team any more. */
extern void gomp_team_thread_forget (void);
/* Give the caller the place of its thread number `id`.  A thread that holds a core stays pinned to
 * that core. */
extern void gomp_team_thread_take_place (struct gomp_region *, unsigned id);
/* The caller has thread number `id` already: run the implicit task of that number. */
extern void gomp_team_thread_run (struct gomp_region *, unsigned id);
/* Take an implicit task that no thread has started, and run it; its number goes to *id.
 *   first  the caller has run no implicit task of the region except those that are counted as done
 * False: there is none. */
extern bool gomp_team_thread_run_next (struct gomp_region *, bool first, unsigned *id);
#pragma GCC visibility pop
#endif
