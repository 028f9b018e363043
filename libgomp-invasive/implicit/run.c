/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * run.c - see run.h.
 */
#include "run.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "history.h"
#include "points.h"
#include "ready.h"
#include "suspended.h"
#include "team_thread.h"
#include "unheld.h"
#include <sys/resource.h>

/* --- kernel threads that run implicit tasks */

/* Run implicit tasks of the region, as long as there are any and neither the core's owner nor a
 * ready thread needs the core.  Returns how many. */
static unsigned run_tickets (struct gomp_region *region)
{
    unsigned id, done = 0;
    uint64_t over[GOMP_VACANT_WORDS] = {0};
    while (gomp_team_thread_run_next(region, done == 0, &id)) {
        gomp_number_set(over, id);
        done++;
        if (!gomp_holds_core())
            break; /* a thread without a hold runs one only (watchdog.h) */
        if (gomp_hold_called_back() || gomp_ready_here(inv_hold))
            break;
    }
    gomp_numbers_vacate(region, over);
    return done;
}

/* Runs implicit tasks of the region, if it has any.  The worker's last access to the team is
 * gomp_region_leave. */
static bool serve_region (struct gomp_region *region)
{
    if (!gomp_region_has_tickets(region))
        return false;
    if (gomp_region_may_start(region)) {
        enum gomp_start start = gomp_contexts_start(region);
        if (start != GOMP_NO_MEMORY)
            return start == GOMP_STARTED;
    }
    unsigned done = run_tickets(region);
    if (done == 0)
        return false;
    gomp_team_thread_forget();
    gomp_region_leave(region, done * GOMP_UNFINISHED_ONE);
    return true;
}

static bool run_ticket (void)
{
    return gomp_any_region(serve_region);
}

/* --- the source of work: what has not been started, and contexts */

static bool waits (void)
{
    return gomp_contexts_waiting() || gomp_tickets_left();
}

static bool in_sight (void)
{
    return gomp_tickets_in_sight() || gomp_contexts_any_ready();
}

static bool unheld_may_run (void)
{
    return gomp_tickets_left() || gomp_carriers_inspect().ready > 0;
}

static bool in_use (void)
{
    return gomp_regions_in_use();
}

/* The calling thread gives its core up inside a region.  If the region was left to this core,
 * unstarted implicit tasks are for all cores from now on, and no further region of the function is
 * left to one core.  True: there are such tasks. */
static bool share_own_region (void)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_region *region = team ? team->barrier.region : NULL;
    if (!region || !gomp_region_is_alone(region))
        return false;
    gomp_history_alone_stalls(atomic_load_explicit(&region->fn, memory_order_relaxed));
    atomic_store_explicit(&region->tickets.alone, false, memory_order_relaxed);
    return gomp_tickets_any(&region->tickets);
}

static bool publish (void)
{
    bool shared = share_own_region();
    return gomp_contexts_publish() || shared;
}

static bool run (enum gomp_run which)
{
    switch (which) {
    case GOMP_RUN_UNSTARTED:
        return run_ticket() || gomp_contexts_run_others();
    case GOMP_RUN_STOLEN:
        return gomp_contexts_steal();
    default:
        return gomp_contexts_run() || run_ticket();
    }
}

const struct gomp_work_source gomp_implicit_tasks = {.waits = waits,
                                                     .in_sight = in_sight,
                                                     .unstarted = gomp_tickets_left,
                                                     .unheld_may_run = unheld_may_run,
                                                     .asks_for_unstarted = gomp_contexts_tickets_first,
                                                     .run = run,
                                                     .publish = publish,
                                                     .sleeps = gomp_region_sleeps,
                                                     .rest = gomp_carrier_rest,
                                                     .leave = gomp_carrier_leave,
                                                     .yield = gomp_program_yields,
                                                     .in_use = in_use};

/* --- the master */

/* May this thread run implicit tasks of other thread numbers?  Not if the user asked for
 * larger stacks for them than this thread has (OMP_STACKSIZE). */
static bool stack_suffices (void)
{
    int known = atomic_load_explicit(&gomp_contexts.stack_suffices, memory_order_relaxed);
    if (known == 0) {
        size_t asked = 0;
        struct rlimit own;
        known = pthread_attr_getstacksize(&gomp_thread_attr, &asked) == 0 &&
                        getrlimit(RLIMIT_STACK, &own) == 0 && asked > own.rlim_cur
                    ? 2
                    : 1;
        atomic_store_explicit(&gomp_contexts.stack_suffices, known, memory_order_relaxed);
    }
    return known == 1;
}

/* (A master that is a context itself, in a nested region or one of a target construct, starts none
 * in contexts: it waits, and its carrier starts them.) */
bool gomp_master_has_work (struct gomp_region *region)
{
    return region->elastic && gomp_tickets_any(&region->tickets) &&
           (region->light ? !gomp_in_context() : stack_suffices()) && !gomp_ready_here(inv_hold);
}

void gomp_master_share (struct gomp_region *region)
{
    while (gomp_master_has_work(region)) {
        if (region->light) {
            /* Without memory for stacks implicit tasks are kernel threads. */
            if (gomp_contexts_start(region) == GOMP_NO_MEMORY)
                region->light = false;
            gomp_hold_checkpoint();
            continue;
        }
        unsigned done = run_tickets(region);
        inv_assert(done < region->start.nthreads);
        gomp_team_thread_become(region, 0);
        if (__builtin_expect(gomp_places_list != NULL, 0))
            gomp_team_thread_take_place(region, 0);
        gomp_region_leave(region, done * GOMP_UNFINISHED_ONE);
        gomp_hold_checkpoint();
    }
}
