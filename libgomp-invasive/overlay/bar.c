/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * bar.c - the team barrier.  Replaces config/linux/bar.c.
 *
 * One counter of those still to come and one word that says which barrier this is.
 * Who waits spins and then parks (wait.h): its core passes to a thread of the team that
 * has not arrived yet.  Opening a barrier that nobody sleeps in makes no system call.
 * Waiting threads execute explicit tasks meanwhile.
 */
#include "wait.h"
#include "region.h"

void gomp_team_barrier_wake (gomp_barrier_t *bar, int count)
{
    gomp_unpark((int *)&bar->generation, count == 0 ? INT_MAX : count);
    if (bar->region)
        gomp_region_call_helpers(bar->region, count);
}

static void open_barrier (gomp_barrier_t *bar, unsigned generation)
{
    __atomic_store_n(&bar->generation, generation, MEMMODEL_RELEASE);
    gomp_unpark((int *)&bar->generation, INT_MAX);
}

/* The last thread has arrived: open, unless there are explicit tasks to be executed
 * first.  True when the barrier is open. */
static bool last_arrived (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    bar->awaited = bar->total;
    team->work_share_cancelled = 0;
    if (__builtin_expect(team->task_count != 0, 0)) {
        gomp_barrier_handle_tasks(state);
        return false;
    }
    open_barrier(bar, (state & -BAR_INCR) + BAR_INCR);
    return true;
}

/* Wait until the generation after `state`, executing tasks.  True when a barrier that may
 * be cancelled was. */
static bool wait_open (gomp_barrier_t *bar, gomp_barrier_state_t state, bool cancellable)
{
    unsigned base = state & -BAR_INCR;
    for (;;) {
        unsigned now = gomp_barrier_flags(bar);
        if (cancellable && (now & BAR_CANCELLED))
            return true;
        if ((now & -BAR_INCR) != base)
            return false;
        if (now & BAR_TASK_PENDING) {
            gomp_barrier_handle_tasks(base | (state & BAR_CANCELLED));
            continue; /* anything may have changed: look again before sleeping on it */
        }
        do_wait((int *)&bar->generation, (int)now);
    }
}

void gomp_team_barrier_wait_end (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    if (gomp_barrier_last_thread(state) && last_arrived(bar, state))
        return;
    wait_open(bar, state & ~BAR_WAS_LAST, false);
}

void gomp_team_barrier_wait (gomp_barrier_t *bar)
{
    gomp_team_barrier_wait_end(bar, gomp_barrier_wait_start(bar));
}

bool gomp_team_barrier_wait_cancel_end (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    if (gomp_barrier_last_thread(state) && last_arrived(bar, state))
        return false;
    if (state & BAR_CANCELLED)
        return true;
    return wait_open(bar, state & ~BAR_WAS_LAST, true);
}

bool gomp_team_barrier_wait_cancel (gomp_barrier_t *bar)
{
    return gomp_team_barrier_wait_cancel_end(bar, gomp_barrier_wait_start(bar));
}

void gomp_team_barrier_cancel (struct gomp_team *team)
{
    gomp_mutex_lock(&team->task_lock);
    bool already = gomp_team_barrier_cancelled(&team->barrier);
    if (!already)
        gomp_barrier_change(&team->barrier, BAR_CANCELLED, 0);
    gomp_mutex_unlock(&team->task_lock);
    if (!already)
        gomp_unpark((int *)&team->barrier.generation, INT_MAX);
}
