/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * units.h - units, which policies give out: cores of the table (hardware threads), or physical
 * cores, all of whose threads then have one owner.  Policies and placement count in units; the
 * table and the constraints of processes count in cores.  Pure functions.
 */
#ifndef RMD_UNITS_H
#define RMD_UNITS_H

#include "rmd/placement/placement.h"
#include "rmd/policy/policy.h"
#include "rmd/placement/smt.h"
#include "libinvasive/table/topology.h"

struct rmd_units {
    unsigned count, ncores;
    unsigned first[INV_MAX_CORES + 1]; /* by unit: its first core; one more: the end */
    unsigned of[INV_MAX_CORES];        /* by core: its unit */
    unsigned char apart[INV_MAX_CORES]; /* by unit, as in inv_topology */
};

/* Fills in the machine's units: its physical cores with RMD_SMT_CORE, else its cores. */
void rmd_units_of(struct rmd_units *units, const struct inv_topology *topology, enum rmd_smt smt);

/*
 * rmd_units_need - what a process has announced, in units: enough of them for its min_cores, no
 * more than fit in its max_cores but at least one, and its scalability graph at the points that
 * are whole units.  A speed-up is divided by the mean number of cores in a unit, so that it is
 * one over a unit with perfect speed-up, and stays valid.  need->owned is left alone.
 */
void rmd_units_need(const struct rmd_units *units, struct rmd_need *need);

/*
 * rmd_units_place - rmd_place_on (placement.h) for cores that are given out in units.
 *   owner, holders  by core; afterwards all cores of a unit have one owner
 *   procs           targets in units, but main_core and preferred are cores
 * Returns the number of cores whose owner has changed.
 */
unsigned rmd_units_place(const struct rmd_units *units, int *owner, const int *holders,
                         const struct rmd_placed *procs, unsigned nprocs);

/* Is this core the first of its unit? */
static inline bool rmd_units_first(const struct rmd_units *units, unsigned core)
{
    return units->first[units->of[core]] == core;
}

#endif
