/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop.c - worksharing loops over long: upstream's file, with the fork's entry points in front of
 * it (loops.h), and regions that are one such loop.
 */
#include "loops.h"
#include "loop_rename.h"
#include "parallel.h"

LOOP_STATIC_NEXT(static_next, long)
#define gomp_iter_static_next static_next
/* Wherever a region begins here its function is called fn. */
#define gomp_resolve_num_threads(requested, count) gomp_resolve_for(fn, requested, count)
static bool first_ordered (long *, long *);
#define gomp_iter_dynamic_next_locked first_ordered
#include <../libgomp/loop.c>
#undef gomp_iter_dynamic_next_locked

#include "loop_long.h"

/* --- a region that is one loop with constant bounds: its work share is made before it begins */

static void run_region (struct gomp_team *team, void (*fn) (void *), void *data, unsigned flags)
{
    gomp_team_start(fn, data, team->nthreads, flags, team, NULL);
    fn(data);
    GOMP_parallel_end();
}

/* Upstream makes sure that a counter that each thread raises once too often does not overflow,
 * but for the threads of the team that the caller is in. */
static void guard_overflow (struct gomp_work_share *ws, const struct gomp_team *team)
{
    unsigned long margin;
    unsigned long room = ws->incr > 0 ? (unsigned long)LONG_MAX - (unsigned long)ws->end
                                      : (unsigned long)ws->end - (unsigned long)LONG_MIN;
    unsigned long size = ws->incr > 0 ? (unsigned long)ws->chunk_size
                                      : -(unsigned long)ws->chunk_size;
    if (__builtin_mul_overflow(size, team->nthreads + 1UL, &margin) || margin >= room)
        ws->mode = 0;
}

static void parallel_dynamic (void (*fn) (void *), void *data, unsigned num_threads, long start,
                              long end, long incr, long chunk, unsigned flags)
{
    struct gomp_team *team = gomp_new_team(gomp_resolve_num_threads(num_threads, 0));
    struct gomp_work_share *ws = &team->work_shares[0];
    init_shared(ws, start, end, incr, chunk);
    guard_overflow(ws, team);
    run_region(team, fn, data, flags);
}

static void parallel_runtime (void (*fn) (void *), void *data, unsigned num_threads, long start,
                              long end, long incr, unsigned flags)
{
    struct gomp_team *team = gomp_new_team(gomp_resolve_num_threads(num_threads, 0));
    struct gomp_work_share *ws = &team->work_shares[0];
    init_runtime(ws, start, end, incr, team, (const void *)(uintptr_t)fn);
    if (ws->sched == GFS_DYNAMIC && !(ws->mode & LOOP_SPLIT))
        guard_overflow(ws, team);
    run_region(team, fn, data, flags);
}

#define PARALLEL_ALIAS(entry, ours)                                                              \
    extern __typeof(ours) called_parallel_##entry __asm__("GOMP_parallel_loop_" #entry)          \
        __attribute__((alias(#ours)))
PARALLEL_ALIAS(nonmonotonic_dynamic, parallel_dynamic);
PARALLEL_ALIAS(nonmonotonic_runtime, parallel_runtime);
PARALLEL_ALIAS(maybe_nonmonotonic_runtime, parallel_runtime);
