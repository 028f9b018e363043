/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * bar.c - the team barrier.  Replaces config/linux/bar.c.
 *
 * One counter of threads still to come and one word that says which barrier this is.
 * A waiting thread spins and then parks (wait.h): its core passes to a thread of the team
 * that has not arrived yet.  Opening a barrier in which no thread sleeps makes no system call.
 * Where there are explicit tasks, waiting threads execute them (gomp_tasks_at_barrier).
 */
#include "wait.h"
#include <libinvasive/base/assertion.h>
#include "carrier.h"
#include "context.h"
#include "costs.h"
#include "region.h"
#include "suspended.h"
#include "tasks.h"

static struct gomp_team *team_of (gomp_barrier_t *bar)
{
    return (struct gomp_team *)((char *)bar - offsetof(struct gomp_team, barrier));
}

/* Wakes all threads that wait here.  In a region with tasks they sleep on another word
 * (taskrun.c). */
static void wake_all (gomp_barrier_t *bar, struct gomp_team *team)
{
    gomp_unpark((int *)&bar->generation, INT_MAX);
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    if (tasks && (uint32_t)atomic_load(&tasks->asleep) > 0)
        gomp_tasks_signal(tasks, INT_MAX);
}

static unsigned next_generation (unsigned generation)
{
    inv_assert(!(generation & BAR_WAITING_FOR_TASK) || (generation & BAR_TASKS));
    return (generation & -BAR_INCR) + BAR_INCR + (generation & BAR_TASKS);
}

void gomp_barrier_open (gomp_barrier_t *bar, unsigned generation)
{
    /* seq_cst: partner is sleep_at_barrier, which says that it sleeps and then looks here */
    if (__atomic_compare_exchange_n(&bar->generation, &generation, next_generation(generation), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        wake_all(bar, team_of(bar));
    gomp_context_make_way();
}

/* The last thread has arrived: open, unless there are explicit tasks to be executed first.  True
 * when the barrier is open. */
static bool open_if_done (gomp_barrier_t *bar)
{
    struct gomp_team *team = team_of(bar);
    unsigned now = gomp_barrier_flags(bar);
    inv_assert(bar->total == team->nthreads);
    inv_assert(gomp_cancel_var || !(now & BAR_WAITING_FOR_TASK)); /* the barrier before is open */
    bar->awaited = bar->total;
    if (team->work_share_cancelled) /* not stored each time: other cores read the line */
        team->work_share_cancelled = 0;
    if (__builtin_expect(now & BAR_TASKS, 0)) {
        if (gomp_tasks_outstanding(team)) {
            /* release: a thread that sees the flag sees what all arrived threads have written */
            __atomic_fetch_or(&bar->generation, BAR_WAITING_FOR_TASK, __ATOMIC_SEQ_CST);
            return false;
        }
        __atomic_exchange_n(&bar->generation, next_generation(now), __ATOMIC_SEQ_CST);
        wake_all(bar, team);
    } else {
        __atomic_exchange_n(&bar->generation, next_generation(now), __ATOMIC_SEQ_CST);
        /* No core is called for a short region: it would come too late for the contexts. */
        if (!gomp_unpark_sleepers((int *)&bar->generation, INT_MAX) &&
            !(bar->region && bar->region->brief))
            gomp_suspended_call_cores();
    }
    return true;
}

static bool last_arrived (gomp_barrier_t *bar)
{
    bool open = open_if_done(bar);
    if (open)
        gomp_context_make_way();
    return open;
}

void gomp_barrier_arrived (gomp_barrier_t *bar, unsigned count)
{
    unsigned total = bar->total; /* read before: once the threads are counted the team may end */
    unsigned awaited = __atomic_sub_fetch(&bar->awaited, count, MEMMODEL_ACQ_REL);
    inv_assert(count > 0 && (gomp_cancel_var || awaited <= total - count));
    if (awaited != 0 || open_if_done(bar))
        return;
    /* The last task may have ended before its thread could see that all have arrived, and no thread
     * that waits may look again.  seq_cst: partner is try_open of taskrun.c, after the task's
     * end. */
    struct gomp_team *team = team_of(bar);
    unsigned now = __atomic_load_n(&bar->generation, __ATOMIC_SEQ_CST);
    if ((now & BAR_WAITING_FOR_TASK) && !gomp_tasks_outstanding(team) &&
        __atomic_compare_exchange_n(&bar->generation, &now, next_generation(now), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        wake_all(bar, team);
}

/* Waits until the generation after `state`, and executes tasks meanwhile.  True: the barrier was
 * cancelled. */
static bool wait_open (gomp_barrier_t *bar, gomp_barrier_state_t state, bool cancellable)
{
    unsigned base = state & -BAR_INCR;
    for (;;) {
        unsigned now = gomp_barrier_flags(bar);
        if (cancellable && (now & BAR_CANCELLED))
            return true;
        if ((now & -BAR_INCR) != base)
            return false;
        if (now & BAR_TASKS) {
            gomp_carrier_count_arrivals(); /* this thread may look for tasks for long */
            gomp_tasks_at_barrier(bar, base, cancellable);
        } else
            do_wait((int *)&bar->generation, (int)now);
    }
}

void gomp_team_barrier_wait_end (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    if (!gomp_barrier_last_thread(state) || !last_arrived(bar))
        wait_open(bar, state & ~BAR_WAS_LAST, false);
    gomp_code_begins(bar);
}

/* A team of one, without explicit tasks: no thread is to be waited for. */
static inline bool nothing_to_wait_for (const gomp_barrier_t *bar, unsigned now)
{
    return bar->total == 1 && (now & (BAR_INCR - 1)) == 0;
}

void gomp_team_barrier_wait (gomp_barrier_t *bar)
{
    unsigned now = gomp_barrier_flags(bar);
    int *word = (int *)&bar->generation;
    if (nothing_to_wait_for(bar, now) && !team_of(bar)->work_share_cancelled)
        return;
    gomp_code_ends(bar);
    if ((now & (BAR_INCR - 1)) == 0 &&
        (gomp_in_context() ? gomp_context_arrive(word, (int)now)
                           : gomp_carrier_arrive(bar->region, word, (int)now))) {
        wait_open(bar, now, false);
        gomp_code_begins(bar);
        return;
    }
    gomp_team_barrier_wait_end(bar, gomp_barrier_wait_start(bar));
}

static bool wait_cancel_end (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    if (gomp_barrier_last_thread(state) && last_arrived(bar))
        return false;
    if (state & BAR_CANCELLED)
        return true;
    return wait_open(bar, state & ~BAR_WAS_LAST, true);
}

bool gomp_team_barrier_wait_cancel_end (gomp_barrier_t *bar, gomp_barrier_state_t state)
{
    bool cancelled = wait_cancel_end(bar, state);
    gomp_code_begins(bar);
    return cancelled;
}

bool gomp_team_barrier_wait_cancel (gomp_barrier_t *bar)
{
    return gomp_team_barrier_wait_cancel_end(bar, gomp_barrier_wait_start(bar));
}

void gomp_team_barrier_cancel (struct gomp_team *team)
{
    gomp_barrier_t *bar = &team->barrier;
    if (!(__atomic_fetch_or(&bar->generation, BAR_CANCELLED, __ATOMIC_SEQ_CST) & BAR_CANCELLED))
        wake_all(bar, team);
}
