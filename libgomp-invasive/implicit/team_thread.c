/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * team_thread.c - see team_thread.h.
 */
#include "team_thread.h"
#include "costs.h"
#include "places.h"
#include "process.h"
#include "watchdog.h"
#include <libinvasive/process/tool.h>

void gomp_team_thread_become (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    const struct gomp_region_start *s = &region->start;
    struct gomp_team *team = s->team;
    inv_assert(id < s->nthreads && team->nthreads == s->nthreads);
    thr->ts.team = team;
    thr->ts.team_id = id;
    thr->ts.level = s->level;
    thr->ts.active_level = s->active_level;
    thr->ts.def_allocator = s->def_allocator;
    thr->task = &team->implicit_task[id];
    thr->thread_pool = s->pool;
    gomp_league_join(thr, s->league);
}

void gomp_team_thread_take_place (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_place_choice choice = gomp_place_of(&region->start, id);
    thr->ts.place_partition_off = choice.partition_off;
    thr->ts.place_partition_len = choice.partition_len;
    if (thr->place != choice.place && inv_hold < 0)
        gomp_bind_self(choice.place);
    thr->place = choice.place;
}

/* The thread has another number of the same team. */
static inline void change_number (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    inv_assert(thr->ts.team == region->start.team && id < region->start.nthreads);
    thr->ts.team_id = id;
    thr->ts.def_allocator = region->start.def_allocator;
    thr->task = &region->start.team->implicit_task[id];
}

/* The thread has the number already. */
static inline void start_implicit_task (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    const struct gomp_region_start *s = &region->start;
    inv_assert(thr->ts.team == s->team && thr->ts.team_id == id);
    thr->ts.work_share = &s->team->work_shares[0];
    thr->ts.last_work_share = NULL;
    thr->ts.single_count = 0;
    thr->ts.static_trip = 0;
    gomp_init_task(thr->task, s->parent, s->icv);
    thr->task->icv.nthreads_var = s->nthreads_var;
    thr->task->icv.bind_var = s->bind_var;
    thr->task->taskgroup = s->taskgroup;
    if (__builtin_expect(gomp_places_list != NULL, 0))
        gomp_team_thread_take_place(region, id);
}

void gomp_team_thread_run (struct gomp_region *region, unsigned id)
{
    start_implicit_task(region, id);
    INV_TELL(task_begin(region->start.team, id));
    gomp_code_begins(&region->start.team->barrier);
    inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) >= GOMP_UNFINISHED_ONE);
    region->start.fn(region->start.data);
    gomp_code_ends(&region->start.team->barrier);
    INV_TELL(task_end(region->start.team, id));
}

void gomp_team_thread_forget (void)
{
    struct gomp_thread *thr = gomp_thread();
    thr->ts.team = NULL;
    thr->ts.team_id = 0;
    thr->ts.level = 0;
    thr->ts.active_level = 0;
    thr->task = NULL;
}

bool gomp_team_thread_run_next (struct gomp_region *region, bool first, unsigned *id)
{
    if (!gomp_ticket_take(&region->tickets, inv_hold, !first, id))
        return false;
    if (__builtin_expect(inv_hold == INV_HOLD_NONE, 0))
        gomp_progress_count_extra();
    if (first)
        gomp_team_thread_become(region, *id);
    else
        change_number(region, *id);
    gomp_team_thread_run(region, *id);
    return true;
}
