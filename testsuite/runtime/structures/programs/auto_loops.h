/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * auto_loops.h - the entry points of loops over long (loop/loop_entries.h) with OMP_SCHEDULE=auto,
 * for programs that are linked with loop/loop_auto.c and loop_split.c alone.  Upstream's iter.c is
 * here, too.  The clock of a kernel thread stands still unless the program sets it.
 */
#ifndef AUTO_LOOPS_H
#define AUTO_LOOPS_H

#include "loops.h"
#include "members.h"

static __thread uint64_t clock_ns;

int clock_gettime (clockid_t clock, struct timespec *ts)
{
    (void)clock;
    *ts = (struct timespec){(time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000)};
    return 0;
}

/* --- what the loops call */

unsigned long gomp_available_cpus;

__thread struct gomp_task_icv *gomp_thread_icv;

struct gomp_task_icv *gomp_find_thread_icv (void)
{
    static struct gomp_task_icv icv = {.run_sched_var = GFS_AUTO};
    return &icv;
}

/* Threads have no holds. */
#undef inv_hold_is_lent
__thread bool inv_hold_is_lent;

bool inv_token_overdrawn (struct inv_table *table)
{
    (void)table;
    return false;
}

void gomp_hold_checkpoint (void)
{
    gomp_fatal("a thread without a hold is asked for it");
}

enum inv_verdict inv_hold_poll (void)
{
    return INV_KEEP;
}

/* As a system header: its warnings are none of this project's. */
#include <iter.c>

/* Upstream's function of that name, without what makes claims of dynamic loops quicker. */
static void gomp_loop_init (struct gomp_work_share *ws, long start, long end, long incr,
                            enum gomp_schedule_type sched, long chunk)
{
    ws->sched = sched;
    ws->next = start;
    ws->end = (incr > 0 ? start > end : start < end) ? start : end;
    ws->incr = incr;
    ws->chunk_size = sched == GFS_DYNAMIC ? chunk * incr : chunk;
    ws->mode = 0;
}

/* --- what loops of other kinds call, which are compiled with them */

#define NEVER_CALLED(declaration)                                                                \
    declaration                                                                                  \
    {                                                                                            \
        gomp_fatal("an ordered loop, or none of schedule(runtime)");                             \
    }
NEVER_CALLED(bool gomp_work_share_start (size_t ordered __attribute__((unused))))
NEVER_CALLED(void gomp_ordered_begin (struct gomp_work_share *ws __attribute__((unused)),
                                      bool single __attribute__((unused))))
NEVER_CALLED(void gomp_ordered_pause (struct gomp_work_share *ws __attribute__((unused))))
NEVER_CALLED(void gomp_ordered_enter (struct gomp_work_share *ws __attribute__((unused))))
NEVER_CALLED(void gomp_ordered_over (struct gomp_work_share *ws __attribute__((unused))))
NEVER_CALLED(void gomp_ordered_sync (void))
NEVER_CALLED(void gomp_ordered_first (void))
NEVER_CALLED(void gomp_ordered_last (void))
NEVER_CALLED(static bool gomp_loop_ordered_guided_start (
    long start __attribute__((unused)), long end __attribute__((unused)),
    long incr __attribute__((unused)), long chunk __attribute__((unused)),
    long *istart __attribute__((unused)), long *iend __attribute__((unused))))

LOOP_STATIC_NEXT(static_next, long)
static bool first_ordered (long *, long *);

#include "loop_long.h"

#endif
