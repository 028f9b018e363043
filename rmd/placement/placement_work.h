/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement_work.h - what placement_tree.c, which goes down the machine's tree, and
 * placement_leaf.c, which chooses single cores, have in common.  Private to the two.
 */
#ifndef RMD_PLACEMENT_WORK_H
#define RMD_PLACEMENT_WORK_H

#include "rmd/placement/bins.h"
#include "rmd/placement/placement.h"

#include <stdbool.h>

enum { RMD_NO_CELL = -1, RMD_NO_ENTRY = -1 };

/* A process that shall own another number of cores of a group than it does. */
struct rmd_entry {
    unsigned process;
    unsigned have, want; /* cores of the group */
    unsigned first, end; /* those that it has: rmd_work.cores[first ... end), upwards */
    int cells, last;     /* the children of the group in which it has some, see below */
};

/* A group, and its entries in rmd_work.entries: first those that shall have less, then the growers.
 * A group without an entry stays as it is. */
struct rmd_group {
    unsigned first, end; /* its cores */
    unsigned entries, growers, entries_end;
};

/* How many cores a process has in one child of the group, and what it gains or loses there. */
struct rmd_cell {
    unsigned child;
    unsigned first, have, give, take; /* first: in rmd_work.cores */
    int next; /* of the same entry */
};

struct rmd_range {
    unsigned first, cores;
};

/* Everything that a decision needs; all in one piece of memory. */
struct rmd_work {
    const struct rmd_machine *machine;
    int *owner;
    const int *holders;
    const struct rmd_placed *procs;
    unsigned nprocs;
    unsigned *cores;       /* of each process in turn, as they are at the beginning */
    unsigned *free_before; /* by core: how many below it have no owner at the beginning */

    /* the groups of the level that is being divided, and those of the next one */
    struct rmd_group *groups, *next_groups;
    struct rmd_entry *entries, *next_entries;
    unsigned ngroups, next_ngroups, next_nentries;

    /* of the group that is being divided */
    int *entry_of;      /* by process: its entry, RMD_NO_ENTRY; in leaves */
    unsigned growth;    /* cores that are still to be found; in leaves */
    unsigned *child_of; /* by core */
    unsigned *child_first; /* by child, and the end of the last one */
    unsigned *asked; /* by child: cores that processes which are there already would like */
    unsigned *per_child, *shrinkers; /* by child: entries that it will have, and how many of those
                                        shall have less */
    struct rmd_cell *cells;
    unsigned ncells;
    unsigned *order, *counts;
    int *sorted; /* cells of an entry */
    struct rmd_range *ranges;
    struct rmd_bins bins; /* children by their free cores; in a leaf, free ranges by their length */
};

static inline struct rmd_cell *rmd_cell_add(struct rmd_work *w, struct rmd_entry *e, unsigned child)
{
    int cell = (int)w->ncells++;
    w->cells[cell] = (struct rmd_cell){.child = child, .next = RMD_NO_CELL};
    if (e->cells == RMD_NO_CELL)
        e->cells = cell;
    else
        w->cells[e->last].next = cell;
    e->last = cell;
    return &w->cells[cell];
}

/* The entry of the process in the group that is being divided, if it is to get more. */
static inline struct rmd_entry *rmd_grower(struct rmd_work *w, int process)
{
    if (process < 0 || process >= (int)w->nprocs || w->entry_of[process] == RMD_NO_ENTRY)
        return NULL;
    struct rmd_entry *e = &w->entries[w->entry_of[process]];
    return e->want > e->have ? e : NULL;
}

/* Place the entries of a group whose cores are all as near to each other. */
void rmd_place_in_leaf(struct rmd_work *w, const struct rmd_group *group);

#endif
