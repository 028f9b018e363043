/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * help.c - see help.h.
 */
#include "help.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "costs.h"
#include "history.h"
#include "hold.h"
#include "points.h"
#include "process.h"
#include "run.h"
#include "taskpool.h"
#include "tasks.h"
#include "team_thread.h"
#include "unheld.h"
#include "waiting.h"
#include <libinvasive/hold/strangers.h>

static bool core_called_back (void)
{
    return inv_managed() && inv_hold != INV_HOLD_NONE && gomp_hold_called_back();
}

static void help_as (struct gomp_region *region, unsigned id)
{
    inv_assert((uint32_t)atomic_load_explicit(&region->gate, memory_order_relaxed) > 0);
    gomp_team_thread_become(region, id);
    gomp_tasks_help(region->start.team, core_called_back);
    gomp_team_thread_forget();
}

bool gomp_region_help (struct gomp_region *region, uint32_t epoch, unsigned id)
{
    if (!gomp_region_enter(region))
        return false;
    /* If it is another region by now, leave. */
    if (atomic_load_explicit(&region->epoch, memory_order_relaxed) == epoch)
        help_as(region, id);
    gomp_region_leave(region, GOMP_INSIDE_ONE);
    return true;
}

/* The calling worker has a core for an open region.  Executes explicit tasks under a vacant number;
 * or wakes a team thread that sleeps in a barrier, to execute them. */
static bool help_elastic (struct gomp_region *region)
{
    if (!gomp_region_enter(region))
        return false;
    int id = region->elastic ? gomp_number_take_vacant(region) : -1;
    bool helped = id >= 0, called = false;
    if (helped) {
        uint64_t again[GOMP_VACANT_WORDS] = {0};
        help_as(region, (unsigned)id);
        gomp_number_set(again, (unsigned)id);
        gomp_numbers_vacate(region, again);
    } else if (region->elastic && atomic_load(&region->barrier_sleepers) > 0) {
        gomp_tasks_signal(gomp_team_tasks(region->start.team), 1);
        helped = called = true;
    }
    gomp_region_leave(region, GOMP_INSIDE_ONE);
    /* The team thread may be a context in the list of a carrier that executes a long task. */
    if (called)
        gomp_contexts_run_others();
    return helped;
}

/* seq_cst: partner is a thread that sleeps after a look at `help` (help_in_region, wait_for_end) */
void gomp_region_help_wanted (struct gomp_region *region)
{
    atomic_store(&region->help, true);
    if (region->elastic && inv_managed())
        gomp_want_cores();
}

/* `help` is only a hint, but a task that is queued without it would be left to the master alone.
 * So a thread that queues a task looks at the hint afterwards, and this function looks for tasks
 * after it has cleared the hint.  seq_cst, all four; partner: gomp_region_tasks_queued.  While the
 * hint is cleared the process may have ceased to want cores (gomp_stop_wanting), so
 * gomp_region_help_wanted asks for them again. */
void gomp_region_no_tasks (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->help, memory_order_relaxed))
        return;
    atomic_store(&region->help, false);
    if (gomp_tasks_visible(region->start.team))
        gomp_region_help_wanted(region);
}

/* Could a worker help in the region?  The hint alone does not say so: it may outlive the region, if
 * no thread has looked for tasks in vain after the last one. */
static bool help_needed (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->help, memory_order_relaxed) ||
        !atomic_load_explicit(&region->elastic, memory_order_relaxed) ||
        atomic_load_explicit(&region->gate, memory_order_relaxed) == 0)
        return false;
    uint64_t vacant = atomic_load_explicit(&region->barrier_sleepers, memory_order_relaxed);
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        vacant |= atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
    return vacant != 0;
}

static bool help_where_needed (struct gomp_region *region)
{
    return help_needed(region) && help_elastic(region);
}

static bool help_waiting (void)
{
    return gomp_any_region(help_needed);
}

static bool run_tasks (enum gomp_run which)
{
    return which == GOMP_RUN_NEXT && gomp_any_region(help_where_needed);
}

const struct gomp_work_source gomp_explicit_tasks = {.waits = help_waiting,
                                                     .in_sight = gomp_work_source_has_none,
                                                     .unstarted = gomp_work_source_has_none,
                                                     .unheld_may_run = gomp_work_source_has_none,
                                                     .asks_for_unstarted = gomp_work_source_has_none,
                                                     .run = run_tasks,
                                                     .publish = gomp_work_source_has_none,
                                                     .sleeps = gomp_work_source_ignores,
                                                     .rest = gomp_work_source_keeps_none,
                                                     .leave = gomp_pool_donate,
                                                     .yield = gomp_work_source_has_none,
                                                     .in_use = gomp_work_source_has_none,
                                                     .task_point = &gomp_task_point};

/* --- the master at the end of its region */

static bool all_over (void *arg)
{
    struct gomp_region *region = arg;
    /* acquire for what other threads have done; seq_cst: partner is gomp_region_leave, see wait_for_end */
    return atomic_load(&region->gate) == GOMP_INSIDE_ONE &&
           !gomp_tasks_outstanding(region->start.team);
}

/* The same as a cheap hint, while the region has had no explicit task. */
static bool end_ready (void *arg)
{
    struct gomp_region *region = arg;
    return atomic_load_explicit(&region->gate, memory_order_relaxed) == GOMP_INSIDE_ONE ||
           atomic_load_explicit(&region->help, memory_order_relaxed);
}

/* Spin as long as this thread may; executes a task if it finds one. */
static bool end_spin (struct gomp_region *region)
{
    struct gomp_team *team = region->start.team;
    if (gomp_in_context() && gomp_context_has_others())
        return false;
    if (gomp_barrier_flags(&team->barrier) & BAR_TASKS)
        return gomp_tasks_idle(team, all_over, region);
    return gomp_spin_until(end_ready, region);
}

/* Wait until the gate or the tasks have changed. */
static void wait_for_end (struct gomp_region *region)
{
    if (end_spin(region))
        return;
    inv_assert(gomp_thread()->ts.team_id == 0);
    int word = atomic_load(&region->end_word);
    /* seq_cst, as the looks after it: partners are gomp_region_leave, and threads that queue a task
     * (after_queueing, gomp_region_call_helpers) */
    atomic_store(&region->master_waits, 1);
    if (!all_over(region) && !gomp_tasks_visible(region->start.team)) {
        gomp_park((int *)&region->end_word, word);
        gomp_idle_slept();
    }
    atomic_store(&region->master_waits, 0);
}

void gomp_region_finish (struct gomp_region *region)
{
    struct gomp_team *team = region->start.team;
    inv_assert(gomp_thread()->ts.team == team && gomp_thread()->ts.team_id == 0);
    gomp_code_ends(&team->barrier);
    gomp_region_leave(region, GOMP_UNFINISHED_ONE); /* implicit task 0 */
    gomp_master_share(region);
    for (;;) {
        uint64_t open = GOMP_INSIDE_ONE;
        if (all_over(region)) {
            if (atomic_compare_exchange_strong(&region->gate, &open, 0))
                break;
        } else if (gomp_tasks_run(team, core_called_back))
            gomp_hold_checkpoint();
        else if (gomp_master_has_work(region))
            gomp_master_share(region);
        else
            wait_for_end(region);
    }
    inv_assert(!region->elastic || gomp_tickets_count(&region->tickets, region->epoch) == 0);
    inv_assert(atomic_load_explicit(&region->master_waits, memory_order_relaxed) == 0);
    if (!inv_managed())
        return;
    if (atomic_load_explicit(&inv_strangers.count, memory_order_relaxed) > 0) {
        if (!region->brief || region->began_ns != 0) /* takes time: not after each short one */
            inv_strangers_sample();
        inv_thread_follow_placement();
    }
    gomp_history_region_ends(region);
    if (__builtin_expect(region->cost.of != NULL, 0))
        gomp_cost_region_ends(region);
    if (region->start.master_holds_core && !gomp_holds_core())
        gomp_hold_acquire(); /* the watchdog had let the master run without one */
    gomp_hold_checkpoint(); /* a serial part may be long: not on a core that is asked back */
}
