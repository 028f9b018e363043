/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement_tree.c - from C and D to the next C, down the tree of the machine.
 *
 * For each group of cores it is known how many of them a process has and how many it shall
 * have; begin with the whole machine.  To divide a group among its children (packages, then
 * NUMA nodes, caches, physical cores):
 *   - a process that loses cores leaves its smallest children, so that it is in fewer of them; a
 *     remainder is taken where a process that is there already would grow;
 *   - a process that gains cores gets them in one of its own children if all are free there,
 *     else in its own as far as they go, then where they fit best (best fit, decreasing).
 * A process that gains in a group loses in none of its children, and vice versa, so moves stay
 * minimal on all levels.  Every level is one pass over the cores of those groups in which
 * something changes.
 */
#define _GNU_SOURCE
#include "rmd/placement/placement_work.h"
#include "libinvasive/base/assertion.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 16 }; /* so few are sorted by insertion */

/* --- dividing a group */

/* Number the children of a group of this level.  Returns how many there are. */
static unsigned number_children(struct rmd_work *w, const struct rmd_group *g, unsigned level)
{
    const unsigned char *apart = w->machine->apart;
    unsigned child = 0;
    if (level == 0 || !apart)
        return g->end - g->first; /* as below, but the numbers are not used */
    for (unsigned c = g->first; c < g->end; child++) {
        w->child_first[child] = c;
        do
            w->child_of[c++] = child;
        while (c < g->end && apart[c] < level);
    }
    w->child_first[child] = g->end;
    return child;
}

/* In which children the entry has its cores. */
static void find_cells(struct rmd_work *w, struct rmd_entry *e)
{
    unsigned at = e->first;
    e->cells = e->last = RMD_NO_CELL;
    while (at < e->end) {
        unsigned child = w->child_of[w->cores[at]], from = at;
        if (child == w->child_of[w->cores[e->end - 1]])
            at = e->end; /* mostly in one */
        else
            while (w->child_of[w->cores[at]] == child)
                at++;
        struct rmd_cell *cell = rmd_cell_add(w, e, child);
        cell->first = from;
        cell->have = at - from;
    }
}

/* Counts the free cores of each child, and the cores of each entry in each child. */
static void count_child_cores(struct rmd_work *w, const struct rmd_group *g, unsigned nchildren)
{
    for (unsigned child = 0; child < nchildren; child++) {
        w->bins.space[child] =
            w->free_before[w->child_first[child + 1]] - w->free_before[w->child_first[child]];
        w->asked[child] = w->per_child[child] = w->shrinkers[child] = 0;
    }
    w->ncells = 0;
    for (unsigned i = g->entries; i < g->entries_end; i++)
        find_cells(w, &w->entries[i]);
}

static int compare_have(const void *a, const void *b, void *work)
{
    const struct rmd_cell *cells = ((struct rmd_work *)work)->cells;
    int x = *(const int *)a, y = *(const int *)b;
    if (cells[x].have != cells[y].have)
        return cells[x].have < cells[y].have ? -1 : 1;
    return x > y ? -1 : 1; /* of equals the last: ranges grow upwards */
}

/* By insertion. */
static void sort_few_cells(struct rmd_work *w, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        int cell = w->sorted[i];
        unsigned at = i;
        for (; at > 0 && compare_have(&cell, &w->sorted[at - 1], w) < 0; at--)
            w->sorted[at] = w->sorted[at - 1];
        w->sorted[at] = cell;
    }
}

/* The entry's cells in w->sorted, those with the fewest cores first, the one with the core
 * that the process keeps last of all. */
static unsigned sort_cells(struct rmd_work *w, const struct rmd_group *g, const struct rmd_entry *e)
{
    unsigned n = 0;
    int main_core = w->procs[e->process].main_core, kept = RMD_NO_CELL;
    bool here = main_core >= (int)g->first && main_core < (int)g->end &&
                w->owner[main_core] == (int)e->process;
    for (int i = e->cells; i != RMD_NO_CELL; i = w->cells[i].next)
        if (here && w->cells[i].child == w->child_of[main_core])
            kept = i;
        else
            w->sorted[n++] = i;
    if (n > SMALL)
        qsort_r(w->sorted, n, sizeof *w->sorted, compare_have, w);
    else
        sort_few_cells(w, n);
    if (kept != RMD_NO_CELL)
        w->sorted[n++] = kept;
    return n;
}

/* How many cores more are asked for in the child than are free. */
static long shortage_of(const struct rmd_work *w, const struct rmd_cell *cell)
{
    return (long)w->asked[cell->child] - (long)w->bins.space[cell->child];
}

static void give_up_cores(struct rmd_work *w, struct rmd_cell *cell, unsigned cores)
{
    cell->give += cores;
    inv_assert(cell->give <= cell->have);
    w->bins.space[cell->child] += cores;
}

static void shrink_entry(struct rmd_work *w, const struct rmd_group *g, const struct rmd_entry *e)
{
    inv_assert(e->have >= e->want);
    unsigned surplus = e->have - e->want, n, i = 0;
    if (!e->want) {
        for (int c = e->cells; c != RMD_NO_CELL; c = w->cells[c].next)
            give_up_cores(w, &w->cells[c], w->cells[c].have);
        return;
    }
    n = sort_cells(w, g, e);
    for (; i < n && w->cells[w->sorted[i]].have <= surplus; i++) {
        surplus -= w->cells[w->sorted[i]].have;
        give_up_cores(w, &w->cells[w->sorted[i]], w->cells[w->sorted[i]].have);
    }
    if (!surplus)
        return;
    inv_assert(i < n); /* a process has at least as many cores as it gives up */
    struct rmd_cell *where = &w->cells[w->sorted[i]];
    for (; i < n; i++) {
        struct rmd_cell *cell = &w->cells[w->sorted[i]];
        if (cell->have > surplus && shortage_of(w, cell) > shortage_of(w, where))
            where = cell;
    }
    give_up_cores(w, where, surplus);
}

/* Asks for cores in the child where the process has most; processes that give up cores prefer
 * it. */
static void ask_for_cores(struct rmd_work *w, const struct rmd_entry *e)
{
    const struct rmd_cell *most = NULL;
    for (int i = e->cells; i != RMD_NO_CELL; i = w->cells[i].next)
        if (!most || w->cells[i].have > most->have)
            most = &w->cells[i];
    if (most)
        w->asked[most->child] += e->want - e->have;
}

static unsigned growth_of(const struct rmd_entry *e)
{
    inv_assert(e->want > e->have);
    return e->want - e->have;
}

/* A counting sort of the growers into w->order: the largest gain first, of equals the first. */
static void sort_many_growers(struct rmd_work *w, const struct rmd_group *g)
{
    unsigned most = 0, n = 0;
    for (unsigned i = g->growers; i < g->entries_end; i++)
        most = growth_of(&w->entries[i]) > most ? growth_of(&w->entries[i]) : most;
    memset(w->counts, 0, (most + 1) * sizeof *w->counts);
    for (unsigned i = g->growers; i < g->entries_end; i++)
        w->counts[growth_of(&w->entries[i])]++;
    for (unsigned need = most; need > 0; need--) { /* now: where those of this need begin */
        unsigned count = w->counts[need];
        w->counts[need] = n;
        n += count;
    }
    for (unsigned i = g->growers; i < g->entries_end; i++)
        w->order[w->counts[growth_of(&w->entries[i])]++] = i;
}

/* Sorts the growers into w->order: the largest gain first, of equals the first. */
static void sort_growers(struct rmd_work *w, const struct rmd_group *g)
{
    unsigned n = g->entries_end - g->growers;
    if (n > SMALL) {
        sort_many_growers(w, g);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned need = growth_of(&w->entries[g->growers + i]), at = i;
        for (; at > 0 && growth_of(&w->entries[w->order[at - 1]]) < need; at--)
            w->order[at] = w->order[at - 1];
        w->order[at] = g->growers + i;
    }
}

/* Of the process's children with at least `need` free cores, the one with the fewest. */
static struct rmd_cell *find_tightest_child(struct rmd_work *w, const struct rmd_entry *e,
                                            unsigned need)
{
    struct rmd_cell *best = NULL;
    for (int i = e->cells; i != RMD_NO_CELL; i = w->cells[i].next) {
        struct rmd_cell *cell = &w->cells[i];
        unsigned space = w->bins.space[cell->child];
        if (space >= need && (!best || space < w->bins.space[best->child]))
            best = cell;
    }
    return best;
}

static unsigned take_cores(struct rmd_work *w, struct rmd_cell *cell, unsigned cores)
{
    unsigned space = w->bins.space[cell->child];
    if (cores > space)
        cores = space;
    inv_assert(cores <= w->bins.space[cell->child]);
    cell->take += cores;
    w->bins.space[cell->child] -= cores;
    return cores;
}

/* Lets growers take cores in children where they have some.  What must be found in other children
 * is left in e->have .. e->want.  The first round is for growers that fit into one child: else
 * others would push them out of it.  Returns whether nothing is left. */
static bool grow_inside(struct rmd_work *w, unsigned ngrowers)
{
    bool all = true;
    for (unsigned i = 0; i < ngrowers; i++) {
        struct rmd_entry *e = &w->entries[w->order[i]];
        struct rmd_cell *cell = find_tightest_child(w, e, e->want - e->have);
        if (cell)
            e->have += take_cores(w, cell, e->want - e->have);
    }
    for (unsigned i = 0; i < ngrowers; i++) {
        struct rmd_entry *e = &w->entries[w->order[i]];
        for (int c = e->cells; c != RMD_NO_CELL && e->have < e->want; c = w->cells[c].next)
            e->have += take_cores(w, &w->cells[c], e->want - e->have);
        all &= e->have == e->want;
    }
    return all;
}

/* Where a process goes on: at its preferred core if all of it fits there, or where it fits best;
 * when it fits nowhere, at its preferred core or where most fits. */
static int choose_child(struct rmd_work *w, const struct rmd_group *g, const struct rmd_entry *e,
                        unsigned need)
{
    int preferred = w->procs[e->process].preferred, best = rmd_bins_best(&w->bins, need);
    if (e->cells == RMD_NO_CELL && preferred >= (int)g->first && preferred < (int)g->end) {
        unsigned child = w->child_of[preferred];
        if (w->bins.space[child] >= need || (best == RMD_NO_BIN && w->bins.space[child]))
            return (int)child;
    }
    return best != RMD_NO_BIN ? best : rmd_bins_largest(&w->bins);
}

static void grow_outside(struct rmd_work *w, const struct rmd_group *g, unsigned nchildren,
                         unsigned ngrowers)
{
    rmd_bins_begin(&w->bins, g->end - g->first);
    for (unsigned i = nchildren; i--;) /* of equal ones the first comes first */
        if (w->bins.space[i])
            rmd_bins_add(&w->bins, (int)i);
    for (unsigned i = 0; i < ngrowers; i++) {
        struct rmd_entry *e = &w->entries[w->order[i]];
        int child;
        while (e->have < e->want &&
               (child = choose_child(w, g, e, e->want - e->have)) != RMD_NO_BIN) {
            unsigned space = w->bins.space[child], need = e->want - e->have;
            struct rmd_cell *cell = rmd_cell_add(w, e, (unsigned)child);
            inv_assert(space > 0 && (unsigned)child < nchildren);
            cell->take = need < space ? need : space;
            e->have += cell->take;
            rmd_bins_use(&w->bins, child, cell->take);
        }
    }
    for (unsigned i = 0; i < nchildren; i++)
        if (w->bins.space[i])
            rmd_bins_drop(&w->bins, (int)i);
}

/* The children in which something changes become groups of the next level. */
static void make_child_groups(struct rmd_work *w, const struct rmd_group *g, unsigned nchildren)
{
    for (unsigned i = 0; i < w->ncells; i++) {
        const struct rmd_cell *cell = &w->cells[i];
        w->per_child[cell->child] += cell->give != cell->take;
        w->shrinkers[cell->child] += cell->give > cell->take;
    }
    for (unsigned i = 0; i < nchildren; i++) {
        unsigned begin = w->next_nentries;
        w->next_nentries += w->per_child[i];
        w->next_groups[w->next_ngroups] = (struct rmd_group){
            w->child_first[i], w->child_first[i + 1], begin, begin + w->shrinkers[i],
            w->next_nentries};
        w->next_ngroups += w->per_child[i] > 0;
        inv_assert(w->shrinkers[i] <= w->next_nentries - begin);
        w->per_child[i] = begin; /* now: where its next entry goes */
    }
    for (unsigned i = g->entries; i < g->entries_end; i++)
        for (int c = w->entries[i].cells; c != RMD_NO_CELL; c = w->cells[c].next) {
            const struct rmd_cell *cell = &w->cells[c];
            if (cell->give == cell->take)
                continue;
            w->next_entries[w->per_child[cell->child]++] = (struct rmd_entry){
                .process = w->entries[i].process,
                .have = cell->have,
                .want = cell->have + cell->take - cell->give,
                .first = cell->first,
                .end = cell->first + cell->have,
            };
        }
}

/* The group is one of the next level as well. */
static void pass_group_on(struct rmd_work *w, const struct rmd_group *g)
{
    unsigned n = g->entries_end - g->entries;
    memcpy(w->next_entries + w->next_nentries, w->entries + g->entries, n * sizeof *w->entries);
    w->next_groups[w->next_ngroups++] = (struct rmd_group){
        g->first, g->end, w->next_nentries, w->next_nentries + (g->growers - g->entries),
        w->next_nentries + n};
    w->next_nentries += n;
}

static void share_group(struct rmd_work *w, const struct rmd_group *g, unsigned nchildren)
{
    for (unsigned i = g->growers; i < g->entries_end; i++)
        ask_for_cores(w, &w->entries[i]);
    for (unsigned i = g->entries; i < g->growers; i++)
        shrink_entry(w, g, &w->entries[i]);
    sort_growers(w, g);
    if (!grow_inside(w, g->entries_end - g->growers))
        grow_outside(w, g, nchildren, g->entries_end - g->growers);
    make_child_groups(w, g, nchildren);
}

static void divide_group(struct rmd_work *w, const struct rmd_group *g, unsigned level)
{
    unsigned n = number_children(w, g, level);
    inv_assert(n >= 1 && n <= g->end - g->first);
    inv_assert(g->entries <= g->growers && g->growers <= g->entries_end);
    if (n == g->end - g->first) {
        rmd_place_in_leaf(w, g);
    } else if (n == 1) {
        pass_group_on(w, g);
    } else {
        count_child_cores(w, g, n);
        share_group(w, g, n);
    }
}

/* The level of the whole machine; those above it would not divide it. */
static unsigned find_top_level(const struct rmd_machine *m)
{
    unsigned char most = m->apart ? 0 : 1;
    for (unsigned c = 1; m->apart && c < m->ncores; c++)
        most = m->apart[c] > most ? m->apart[c] : most;
    return most;
}

static void divide_levels(struct rmd_work *w)
{
    for (unsigned level = find_top_level(w->machine) + 1; level--;) {
        w->next_ngroups = w->next_nentries = 0;
        for (unsigned i = 0; i < w->ngroups; i++)
            divide_group(w, &w->groups[i], level);
        struct rmd_group *groups = w->groups;
        struct rmd_entry *entries = w->entries;
        w->groups = w->next_groups;
        w->entries = w->next_entries;
        w->ngroups = w->next_ngroups;
        w->next_groups = groups;
        w->next_entries = entries;
    }
}

/* --- the whole machine */

/* Counts the cores of each process, and the cores without an owner below each core. */
static void count_cores(struct rmd_work *w, unsigned *have)
{
    unsigned unowned = 0;
    memset(have, 0, w->nprocs * sizeof *have);
    for (unsigned c = 0; c < w->machine->ncores; c++) {
        w->free_before[c] = unowned;
        inv_assert(w->owner[c] < (int)w->nprocs);
        if (w->owner[c] >= 0)
            have[w->owner[c]]++;
        else
            unowned++;
    }
    w->free_before[w->machine->ncores] = unowned;
}

/* `end`: by process, where its cores begin, and then where they end. */
static void list_cores(struct rmd_work *w, unsigned *end)
{
    for (unsigned c = 0; c < w->machine->ncores; c++)
        if (w->owner[c] >= 0)
            w->cores[end[w->owner[c]]++] = c;
}

/* Makes an entry for each process whose number of cores changes. */
static void make_entries(struct rmd_work *w)
{
    unsigned *have = w->order; /* not in use yet, as long as the cores or the processes */
    unsigned n = 0, at = 0, shrinkers = 0;
    struct rmd_entry *grower = w->next_entries; /* neither */
    count_cores(w, have);
    for (unsigned p = 0; p < w->nprocs; p++) {
        w->entry_of[p] = RMD_NO_ENTRY;
        unsigned want = w->procs[p].target, count = have[p];
        if (want > w->machine->ncores)
            want = w->machine->ncores;
        struct rmd_entry e = {
            .process = p, .have = count, .want = want, .first = at, .end = at + count};
        have[p] = at;
        at += count;
        w->entries[shrinkers] = e;
        shrinkers += want < count;
        grower[n] = e;
        n += want > count;
    }
    inv_assert(at <= w->machine->ncores && shrinkers + n <= w->nprocs);
    memcpy(&w->entries[shrinkers], grower, n * sizeof *grower);
    n += shrinkers;
    if (n > 0)
        list_cores(w, have);
    w->groups[0] = (struct rmd_group){0, w->machine->ncores, 0, shrinkers, n};
    w->ngroups = n > 0;
}

/* Carves one piece of memory; at NULL it only adds up. */
static void *carve_array(char **at, size_t *total, size_t count, size_t size)
{
    size_t bytes = (count * size + 15) & ~(size_t)15;
    void *piece = *at;
    *total += bytes;
    if (*at)
        *at += bytes;
    return piece;
}

static size_t lay_out_arrays(struct rmd_work *w, char *at)
{
    size_t total = 0, cores = w->machine->ncores, most = cores > w->nprocs ? cores : w->nprocs;
    /* An entry or a cell stands for at least one core that is had, or one that is gained; at
     * the top for a process. */
    size_t entries = (2 * cores > w->nprocs ? 2 * cores : w->nprocs) + 1;
    w->bins.head = carve_array(&at, &total, cores + 1, sizeof *w->bins.head);
    for (size_t k = 0, n = cores + 1; k < RMD_BINS_DEPTH; k++) {
        n = (n + 63) / 64;
        w->bins.words[k] = n;
        w->bins.bits[k] = carve_array(&at, &total, n, sizeof *w->bins.bits[k]);
    }
    w->cores = carve_array(&at, &total, cores, sizeof *w->cores);
    w->free_before = carve_array(&at, &total, cores + 1, sizeof *w->free_before);
    w->bins.next = carve_array(&at, &total, cores, sizeof *w->bins.next);
    w->bins.prev = carve_array(&at, &total, cores, sizeof *w->bins.prev);
    w->bins.space = carve_array(&at, &total, cores, sizeof *w->bins.space);
    w->groups = carve_array(&at, &total, cores + 1, sizeof *w->groups);
    w->next_groups = carve_array(&at, &total, cores + 1, sizeof *w->next_groups);
    w->entries = carve_array(&at, &total, entries, sizeof *w->entries);
    w->next_entries = carve_array(&at, &total, entries, sizeof *w->next_entries);
    w->entry_of = carve_array(&at, &total, w->nprocs, sizeof *w->entry_of);
    w->child_of = carve_array(&at, &total, cores, sizeof *w->child_of);
    w->child_first = carve_array(&at, &total, cores + 1, sizeof *w->child_first);
    w->asked = carve_array(&at, &total, cores, sizeof *w->asked);
    w->per_child = carve_array(&at, &total, cores, sizeof *w->per_child);
    w->shrinkers = carve_array(&at, &total, cores, sizeof *w->shrinkers);
    w->cells = carve_array(&at, &total, entries, sizeof *w->cells);
    w->order = carve_array(&at, &total, most, sizeof *w->order);
    w->counts = carve_array(&at, &total, cores + 1, sizeof *w->counts);
    w->sorted = carve_array(&at, &total, cores, sizeof *w->sorted);
    w->ranges = carve_array(&at, &total, cores, sizeof *w->ranges);
    return total;
}

unsigned rmd_place_on(const struct rmd_machine *machine, int *owner, const int *holders,
                      const struct rmd_placed *procs, unsigned nprocs)
{
    struct rmd_work w = {.machine = machine,
                         .owner = owner,
                         .holders = holders,
                         .procs = procs,
                         .nprocs = nprocs};
    size_t cores = machine->ncores;
    size_t bytes = lay_out_arrays(&w, NULL);
    char *memory = malloc(bytes + cores * sizeof *owner);
    unsigned moved = 0;
    if (!memory)
        return 0;
    int *before = (int *)(memory + bytes);
    memcpy(before, owner, cores * sizeof *owner);
    lay_out_arrays(&w, memory);
    memset(w.bins.head, 0xff, (cores + 1) * sizeof *w.bins.head); /* RMD_NO_BIN */
    for (unsigned k = 0; k < RMD_BINS_DEPTH; k++)
        memset(w.bins.bits[k], 0, w.bins.words[k] * sizeof *w.bins.bits[k]);
    make_entries(&w);
    divide_levels(&w);
    for (unsigned c = 0; c < cores; c++)
        moved += before[c] != owner[c];
    free(memory);
    return moved;
}
