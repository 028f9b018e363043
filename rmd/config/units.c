/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * units.c - cores of the table and the units in which they are given out.  Physical cores may
 * have different numbers of threads (two and one in some laptops, or where the affinity mask
 * has one of two): announcements are converted by the mean.
 */
#include "rmd/config/units.h"
#include "rmd/policy/curve.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/scalability.h"

#include <math.h>

void rmd_units_of(struct rmd_units *u, const struct inv_topology *t, enum rmd_smt smt)
{
    u->count = 0;
    u->ncores = t->ncores;
    for (unsigned c = 0; c < t->ncores; c++) {
        if (c == 0 || smt != RMD_SMT_CORE || t->apart[c] != INV_SAME_CORE) {
            u->first[u->count] = c;
            u->apart[u->count++] = t->apart[c];
        }
        u->of[c] = u->count - 1;
    }
    inv_assert(u->count >= 1 && u->count <= t->ncores && t->ncores <= INV_MAX_CORES);
    u->first[u->count] = t->ncores;
}

/* S at whole units: those in which the points of the graph end. */
static void convert_graph(struct inv_scalability *graph, double width)
{
    struct inv_scalability cores = *graph;
    struct rmd_curve curve;
    unsigned n = 0, last = 0;
    rmd_curve_of(&cores, &curve);
    *graph = (struct inv_scalability){0};
    for (unsigned i = 0; i < inv_scalability_points(&cores); i++) {
        unsigned units = (unsigned)ceil(cores.point[i].cores / width);
        if (units == last)
            continue;
        inv_assert(units > last && n < INV_SCALABILITY_POINTS);
        graph->point[n].cores = last = units;
        graph->point[n++].speedup = (float)(rmd_curve_at(&curve, units * width) / width);
    }
}

void rmd_units_need(const struct rmd_units *u, struct rmd_need *need)
{
    if (u->count == u->ncores)
        return;
    double width = (double)u->ncores / u->count;
    need->min_cores = (unsigned)ceil(need->min_cores / width);
    if (need->max_cores > 0)
        need->max_cores = need->max_cores < width ? 1 : (unsigned)(need->max_cores / width);
    convert_graph(&need->scalability, width);
}

/* The value (owner or holder) of the unit: the first one of its cores that has one.  All have the
 * same, but for cores that were just granted, or whose owner has just died. */
static int unit_value(const struct rmd_units *u, const int *by_core, unsigned unit)
{
    inv_assert(unit < u->count && u->first[unit] < u->first[unit + 1]);
    for (unsigned c = u->first[unit]; c < u->first[unit + 1]; c++)
        if (by_core[c] != RMD_NO_OWNER)
            return by_core[c];
    return RMD_NO_OWNER;
}

static int unit_of(const struct rmd_units *u, int core)
{
    return core >= 0 && core < (int)u->ncores ? (int)u->of[core] : -1;
}

unsigned rmd_units_place(const struct rmd_units *u, int *owner, const int *holders,
                         const struct rmd_placed *procs, unsigned nprocs)
{
    const struct rmd_machine machine = {u->count, u->apart};
    if (u->count == u->ncores)
        return rmd_place_on(&machine, owner, holders, procs, nprocs);
    int unit_owner[INV_MAX_CORES], unit_holder[INV_MAX_CORES];
    struct rmd_placed placed[nprocs + 1];
    unsigned moved = 0;
    for (unsigned i = 0; i < u->count; i++) {
        unit_owner[i] = unit_value(u, owner, i);
        unit_holder[i] = holders ? unit_value(u, holders, i) : RMD_NO_OWNER;
    }
    for (unsigned p = 0; p < nprocs; p++)
        placed[p] = (struct rmd_placed){.target = procs[p].target,
                                        .main_core = unit_of(u, procs[p].main_core),
                                        .preferred = unit_of(u, procs[p].preferred)};
    rmd_place_on(&machine, unit_owner, holders ? unit_holder : NULL, placed, nprocs);
    for (unsigned c = 0; c < u->ncores; c++) {
        moved += owner[c] != unit_owner[u->of[c]];
        owner[c] = unit_owner[u->of[c]];
    }
    return moved;
}
