/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement_leaf.c - single cores of a group in which all are equally near to each other: hardware
 * threads of a core, cores of a cache, or all cores if nothing is known of the machine.
 *
 * Moves without a cost come first: a core goes to the process that computes on it already, or is
 * taken from one that does not.  Then ranges stay contiguous where they can: a process gives up
 * short ranges as a whole, and long ones at an end.  It grows beside the cores that it has.
 */
#include "rmd/placement/placement_work.h"
#include "libinvasive/base/assertion.h"

#include <stdlib.h>
#include <string.h>

/* --- giving up */

static void release_core(struct rmd_work *w, struct rmd_entry *e, unsigned core)
{
    inv_assert(w->owner[core] == (int)e->process && e->have > e->want);
    w->owner[core] = RMD_NO_OWNER;
    e->have--;
}

static void release_cores(struct rmd_work *w, struct rmd_entry *e)
{
    for (unsigned i = e->first; i < e->end; i++)
        release_core(w, e, w->cores[i]);
}

/* Gives up cores on which others compute: first the growers, then any process. */
static void release_lent_cores(struct rmd_work *w, struct rmd_entry *e)
{
    int main_core = w->procs[e->process].main_core;
    for (int any = 0; any <= 1; any++)
        for (unsigned i = e->first; i < e->end && e->have > e->want; i++) {
            unsigned c = w->cores[i];
            int holder = w->holders[c];
            if (w->owner[c] == (int)e->process && (int)c != main_core && holder >= 0 &&
                holder != (int)e->process && (any || rmd_grower(w, holder)))
                release_core(w, e, c);
        }
}

static bool range_has_core(const struct rmd_range *range, int core)
{
    return core >= (int)range->first && core < (int)(range->first + range->cores);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct rmd_range *x = a, *y = b;
    if (x->cores != y->cores)
        return x->cores < y->cores ? -1 : 1;
    return x->first > y->first ? -1 : 1; /* of equals the last: ranges grow upwards */
}

/* Adds a core that is above all of the first n ranges.  Returns how many ranges there are then. */
static unsigned append_core(struct rmd_work *w, unsigned n, unsigned c)
{
    if (n && w->ranges[n - 1].first + w->ranges[n - 1].cores == c) {
        w->ranges[n - 1].cores++;
        return n;
    }
    w->ranges[n] = (struct rmd_range){c, 1};
    return n + 1;
}

/* The process's ranges in w->ranges, the shortest first, that with its main thread's core last of
 * all. */
static unsigned find_ranges(struct rmd_work *w, const struct rmd_entry *e)
{
    unsigned n = 0;
    for (unsigned i = e->first; i < e->end; i++) {
        unsigned c = w->cores[i];
        if (w->owner[c] == (int)e->process)
            n = append_core(w, n, c);
    }
    if (n < 2)
        return n;
    qsort(w->ranges, n, sizeof *w->ranges, compare_ranges);
    for (unsigned i = 0; i + 1 < n; i++)
        if (range_has_core(&w->ranges[i], w->procs[e->process].main_core)) {
            struct rmd_range kept = w->ranges[i];
            memmove(&w->ranges[i], &w->ranges[i + 1], (n - 1 - i) * sizeof *w->ranges);
            w->ranges[n - 1] = kept;
            break;
        }
    return n;
}

/* How well the cores at an end of a range, beside core `c`, go to others. */
static int appeal_of(struct rmd_work *w, const struct rmd_group *g, unsigned c)
{
    if (c < g->first || c >= g->end) /* also below 0 */
        return 0;
    return w->owner[c] < 0 ? 1 : rmd_grower(w, w->owner[c]) ? 2 : 0;
}

/* From one end of the range, as long as its process has too many. */
static void trim_range(struct rmd_work *w, struct rmd_entry *e, const struct rmd_range *range,
                       bool at_top)
{
    unsigned low = range->first, high = range->first + range->cores;
    while (e->have > e->want && low < high) {
        unsigned c = at_top ? high - 1 : low;
        if ((int)c == w->procs[e->process].main_core) {
            if (high - low == 1)
                return;
            at_top = !at_top;
            c = at_top ? high - 1 : low;
        }
        release_core(w, e, c);
        if (at_top)
            high--;
        else
            low++;
    }
}

static void release_range_ends(struct rmd_work *w, const struct rmd_group *g, struct rmd_entry *e)
{
    unsigned n = find_ranges(w, e), i = 0;
    for (; i < n && w->ranges[i].cores <= e->have - e->want; i++)
        for (unsigned c = 0; c < w->ranges[i].cores; c++)
            release_core(w, e, w->ranges[i].first + c);
    const struct rmd_range *where = NULL;
    int best = -1;
    bool at_top = true;
    for (; i < n && best < 2 && e->have > e->want; i++) {
        const struct rmd_range *range = &w->ranges[i];
        int below = appeal_of(w, g, range->first - 1),
            above = appeal_of(w, g, range->first + range->cores);
        if (range->cores <= e->have - e->want || (below <= best && above <= best))
            continue;
        best = above >= below ? above : below;
        at_top = above >= below;
        where = range;
    }
    if (where)
        trim_range(w, e, where, at_top);
}

/* --- taking */

static void seize_core(struct rmd_work *w, struct rmd_entry *e, unsigned core)
{
    inv_assert(w->owner[core] < 0 && e->have < e->want && w->growth > 0);
    w->owner[core] = (int)e->process;
    e->have++;
    w->growth--;
}

static void take_held_cores(struct rmd_work *w, const struct rmd_group *g)
{
    for (unsigned c = g->first; c < g->end; c++) {
        struct rmd_entry *e = w->owner[c] < 0 ? rmd_grower(w, w->holders[c]) : NULL;
        if (e)
            seize_core(w, e, c);
    }
}

static void take_if_grows(struct rmd_work *w, int process, unsigned core)
{
    struct rmd_entry *e = w->owner[core] < 0 ? rmd_grower(w, process) : NULL;
    if (e)
        seize_core(w, e, core);
}

/* Above its own before below. */
static void take_cores_beside(struct rmd_work *w, const struct rmd_group *g)
{
    for (unsigned c = g->first + 1; c < g->end; c++)
        take_if_grows(w, w->owner[c - 1], c);
    for (unsigned c = g->end - 1; c-- > g->first;)
        take_if_grows(w, w->owner[c + 1], c);
}

static void take_cores_from(struct rmd_work *w, const struct rmd_group *g, struct rmd_entry *e,
                            unsigned c)
{
    for (; c < g->end && w->owner[c] < 0 && e->have < e->want; c++)
        seize_core(w, e, c);
}

static void take_preferred_cores(struct rmd_work *w, const struct rmd_group *g)
{
    for (unsigned i = g->growers; i < g->entries_end; i++) {
        struct rmd_entry *e = &w->entries[i];
        int preferred = w->procs[e->process].preferred;
        if (e->have == 0 && preferred >= (int)g->first && preferred < (int)g->end)
            take_cores_from(w, g, e, (unsigned)preferred);
    }
}

/* The free ranges are bins, numbered as in w->ranges. */
static unsigned find_gaps(struct rmd_work *w, const struct rmd_group *g)
{
    unsigned n = 0;
    for (unsigned c = g->first; c < g->end; c++)
        if (w->owner[c] < 0)
            n = append_core(w, n, c);
    rmd_bins_begin(&w->bins, g->end - g->first);
    for (unsigned i = n; i--;) {
        w->bins.space[i] = w->ranges[i].cores;
        rmd_bins_add(&w->bins, (int)i);
    }
    return n;
}

static void take_in_gaps(struct rmd_work *w, const struct rmd_group *g)
{
    unsigned n = find_gaps(w, g);
    for (unsigned i = g->growers; i < g->entries_end; i++) {
        struct rmd_entry *e = &w->entries[i];
        while (e->have < e->want) {
            int gap = rmd_bins_best(&w->bins, e->want - e->have);
            if (gap == RMD_NO_BIN && (gap = rmd_bins_largest(&w->bins)) == RMD_NO_BIN)
                break;
            unsigned before = e->have, first = w->ranges[gap].first;
            for (unsigned k = 0; k < w->ranges[gap].cores && e->have < e->want; k++)
                seize_core(w, e, first + k);
            inv_assert(e->have - before <= w->ranges[gap].cores);
            w->ranges[gap].first += e->have - before;
            w->ranges[gap].cores -= e->have - before;
            rmd_bins_use(&w->bins, gap, e->have - before);
        }
    }
    for (unsigned i = 0; i < n; i++)
        if (w->bins.space[i])
            rmd_bins_drop(&w->bins, (int)i);
}

static void shrink_entry(struct rmd_work *w, const struct rmd_group *g, struct rmd_entry *e)
{
    if (!e->want)
        release_cores(w, e);
    if (e->want < e->have && w->holders)
        release_lent_cores(w, e);
    if (e->want < e->have)
        release_range_ends(w, g, e);
}

static void grow_entries(struct rmd_work *w, const struct rmd_group *g)
{
    if (w->holders)
        take_held_cores(w, g);
    if (w->growth)
        take_cores_beside(w, g);
    if (w->growth)
        take_preferred_cores(w, g);
    if (w->growth)
        take_in_gaps(w, g);
}

void rmd_place_in_leaf(struct rmd_work *w, const struct rmd_group *g)
{
    w->growth = 0;
    for (unsigned i = g->entries; i < g->entries_end; i++) {
        struct rmd_entry *e = &w->entries[i];
        w->entry_of[e->process] = (int)i;
        w->growth += i >= g->growers ? e->want - e->have : 0;
    }
    for (unsigned i = g->entries; i < g->growers; i++)
        shrink_entry(w, g, &w->entries[i]);
    for (unsigned i = g->entries; i < g->growers; i++)
        inv_assert(w->entries[i].have == w->entries[i].want);
    if (w->growth)
        grow_entries(w, g);
    for (unsigned i = g->entries; i < g->entries_end; i++)
        w->entry_of[w->entries[i].process] = RMD_NO_ENTRY;
}
