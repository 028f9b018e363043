/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * open.c - see open.h.
 */
#include "open.h"
#include "context.h"
#include "cores.h"
#include "costs.h"
#include "history.h"
#include "parallel.h"
#include "process.h"
#include "tls.h"
#include "use.h"
#include <libinvasive/hold/pin.h>
#include <libinvasive/process/tool.h>
#include <limits.h>
#include <string.h>

enum {
    BRIEF_NS = 60000,     /* time to wake a sleeping core, about */
    OWN_CORE_NS = 400000, /* a region of less core time may call no core, see is_for_own_core */
};

/* Not with adaptive team sizes, which are chosen by what kernel threads that wait cost
 * (parallel.c).  Not with a tool, which is promised that an implicit task begins and ends on one
 * kernel thread. */
bool gomp_regions_may_be_light (void)
{
    return gomp_movable_threads() && !gomp_team_settings.adaptive && !inv_tool_get() &&
           gomp_contexts_usable();
}

/* For `invade --report` (costs.h). */
static void count_region (struct gomp_region *region)
{
    gomp_barrier_t *bar = &region->start.team->barrier;
    region->cost.of = NULL;
    if (inv_is_recorded())
        gomp_cost_region_opens(region);
    bar->counted = region->cost.of != NULL;
    gomp_code_begins(bar);
}

/* Is the region too short to call another core for it?  With more processes than cores another
 * process could compute there, so for a short region the call costs more than it gains. */
static bool is_for_own_core (uint64_t core_ns)
{
    return (inv_process.anonymous || inv_token_overdrawn(inv_process.table)) && core_ns > 0 &&
           core_ns < OWN_CORE_NS;
}

static bool has_portion (int hold)
{
    return gomp_portion_of(hold, inv_process.ncores) < GOMP_TICKET_PORTIONS;
}

/* With so few cores implicit tasks are dealt in special cases only: two cores that take from the
 * two ends of one range have about the same half in each region anyway. */
enum { FEW_CORES = 2 };

/* Adds the cores that the process owns to the master's.  Returns how many there are then. */
static unsigned add_own_cores (struct gomp_dealt_cores *to)
{
    unsigned us = inv_own_name(), ncores = inv_process.ncores, found = 1;
    for (unsigned core = 0; core < ncores; core++) {
        /* relaxed: a hint */
        inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, core)->word, memory_order_relaxed);
        if (inv_word_owner(w) != us || (int)core == inv_hold)
            continue;
        inv_assert(gomp_portion_of((int)core, ncores) < GOMP_TICKET_PORTIONS);
        to->cores[gomp_portion_of((int)core, ncores)]++;
        found++;
    }
    return found;
}

/* Are the region's implicit tasks to be dealt to cores, *to?  Else all cores take from one range.
 *   is_short  implicit tasks are short.  If the process owns one of few cores, they are dealt to the
 *             master's core, since they are over before another core comes. */
static bool find_dealt_cores (const struct gomp_region *region, struct gomp_ticket_ways ways, bool is_short,
                              struct gomp_dealt_cores *to)
{
    bool few = !ways.alone && inv_process.ncores <= FEW_CORES;
    if (!has_portion(inv_hold) || (few && (!is_short || inv_process.anonymous)))
        return false;
    memset(to->cores, 0, sizeof to->cores);
    to->first = gomp_portion_of(inv_hold, inv_process.ncores);
    inv_assert(to->first < GOMP_TICKET_PORTIONS);
    to->cores[to->first] = 1;
    if (ways.alone)
        return true;
    unsigned cores = add_own_cores(to);
    return few ? cores == 1 : region->start.nthreads <= cores || ways.apart;
}

static bool is_open (struct gomp_region *region)
{
    return atomic_load_explicit(&region->gate, memory_order_relaxed) != 0;
}

/* How many cores the process can use with the region that is about to open: no more than implicit
 * tasks, if this is certainly its only region; else UINT_MAX. */
static unsigned cores_of_use_to (const struct gomp_region *region, bool elastic)
{
    bool only = elastic && region->start.team->prev_ts.level == 0 &&
                region->start.icv->max_active_levels_var <= 1 && !gomp_use_has_further_threads() &&
                !gomp_any_region(is_open);
    return only ? region->start.nthreads : UINT_MAX;
}

/* Is each core to begin with implicit tasks that it has had before?  certain: yes; else if that has
 * been quicker. */
static bool is_apart (struct gomp_region *region, const struct gomp_history *h, bool certain)
{
    bool chosen = h && !certain;
    atomic_store_explicit(&region->order_is_chosen, chosen, memory_order_relaxed);
    return certain || (chosen && gomp_history_prefers_apart(h, region));
}

void gomp_region_open (struct gomp_region *region, bool elastic)
{
    unsigned n = region->start.nthreads;
    inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) == 0); /* its last use is over */
    inv_assert(n >= 1 && (!elastic || n <= GOMP_TICKETS_MOST));
    inv_assert(!elastic || region->registered || n == 1);
    inv_assert(atomic_load_explicit(&region->master_waits, memory_order_relaxed) == 0);
    uint32_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed) + 1;
    struct gomp_region *outer = gomp_region_around(region->start.team->prev_ts.team);
    atomic_store_explicit(&region->elastic, elastic, memory_order_relaxed);
    atomic_store_explicit(&region->outer, outer, memory_order_relaxed);
    if (outer)
        gomp_region_waits(outer); /* an implicit task of it waits for the end of this region */
    region->brief = false;
    region->light = false;
    atomic_store_explicit(&region->fn, region->start.fn, memory_order_release);
    if (atomic_load_explicit(&region->help, memory_order_relaxed))
        atomic_store_explicit(&region->help, false, memory_order_relaxed);
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        atomic_store_explicit(&region->vacant[word], 0, memory_order_relaxed);
    atomic_store_explicit(&region->epoch, epoch, memory_order_relaxed);
    gomp_history_region_opens(region, outer != NULL);
    count_region(region);
    gomp_set_useful_cores(cores_of_use_to(region, elastic));
    atomic_store_explicit(&region->gate, n * GOMP_UNFINISHED_ONE + GOMP_INSIDE_ONE, memory_order_release);
    if (!elastic) {
        if (gomp_region_is_alone(region)) /* the last use of the struct was */
            atomic_store_explicit(&region->tickets.alone, false, memory_order_relaxed);
        return;
    }
    struct gomp_history *h = gomp_history_find(region->start.fn);
    bool spins = h && gomp_history_spins(h, region);
    uint64_t task_ns = h ? gomp_history_task_ns(h, n) : 0;
    region->inside = h ? atomic_load_explicit(&h->inside, memory_order_relaxed) : GOMP_INSIDE_UNKNOWN;
    atomic_store_explicit(&region->waited, false, memory_order_relaxed);
    /* Implicit tasks that never wait need no contexts, which would cost two switches each. */
    region->light = !spins && region->inside != GOMP_NEVER_WAITS && gomp_regions_may_be_light();
    region->brief = task_ns > 0 && task_ns * n < BRIEF_NS;
    if (!region->brief)
        inv_thread_follow_placement(); /* the thread that has pulled us may sleep on (pull.h) */
    /* Not if implicit tasks may wait as kernel threads: one would sleep on the master's core, and
     * no other core would start the rest. */
    bool can_be_alone = !outer && !spins && (region->light || region->inside == GOMP_NEVER_WAITS) &&
                        has_portion(inv_hold);
    bool alone = h && can_be_alone && gomp_history_prefers_alone(h, region);
    struct gomp_dealt_cores to;
    uint32_t short_ns = task_ns < UINT32_MAX ? (uint32_t)task_ns : 0;
    struct gomp_ticket_ways ways = {.together = region->light && region->inside == GOMP_WAITS,
                                    .odd_first = inv_hold % 2 == 1,
                                    .alone = alone};
    bool is_short = gomp_tickets_are_short(short_ns);
    ways.apart = is_apart(region, h, ways.together || is_short);
    /* (Not those of a nested region, which runs on whatever cores are free.) */
    bool dealt = !outer && find_dealt_cores(region, ways, is_short, &to);
    gomp_tickets_open(&region->tickets, epoch, n, short_ns, ways, dealt ? &to : NULL);
    bool later = alone || is_for_own_core(task_ns * n);
    if (later)
        gomp_want_cores_later();
    /* Looked at after the fence of gomp_want_cores_later: the watchdog may have given the region to
     * all cores before there were tickets. */
    if (!later || (alone && !gomp_region_is_alone(region)))
        gomp_want_cores();
    /* Implicit tasks that spin for each other must all run, so those beyond the cores run without a
     * hold.  A nested region counts on one core: threads of the outer region may have the
     * others. */
    unsigned cores = !spins ? n : outer ? 1 : gomp_cores_at_hand();
    if (n > cores)
        gomp_run_unheld(n - cores);
}
