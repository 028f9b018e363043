/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cells.c - the kernel of cells.h with OpenMP: each step a static `parallel for` over the cells,
 * and before it, if asked for, a reinvade with the number of cells as workload.
 *
 * Run stock, there is no inv_reinvade, and nothing is asked for.
 */
#define _GNU_SOURCE
#include "cells.h"
#include "invasive.h"

#include <stdbool.h>

#pragma weak inv_reinvade

static void compute_all(const struct cells_options *o, long step, long cells)
{
    if (o->machine) { /* a thread sleeps once, for all its cells */
#pragma omp parallel
        {
            long mine = 0, first = 0;
#pragma omp for schedule(static) nowait
            for (long c = 0; c < cells; c++) {
                first = mine == 0 ? c : first;
                mine++;
            }
            cells_compute(o, step, first, first + mine);
        }
        return;
    }
#pragma omp parallel for schedule(static)
    for (long c = 0; c < cells; c++)
        cells_compute(o, step, c, c + 1);
}

/* Of a step: `serial` of its cells in one thread, then all of them in c. */
static struct inv_scalability amdahl(const struct cells_options *o)
{
    static const unsigned cores[INV_SCALABILITY_POINTS] = {1, 2, 4, 8, 12, 20, 30, 40};
    struct inv_scalability graph;
    for (int i = 0; i < INV_SCALABILITY_POINTS; i++) {
        graph.point[i].cores = cores[i];
        graph.point[i].speedup = (float)((1 + o->serial) / (o->serial + 1. / cores[i]));
    }
    return graph;
}

/* What is announced: the cells of this step; with -left, less the fewer steps are left.  By their
 * square, since programs that own few cores get on faster than by these alone: they compute on
 * what the others lend, would end first, and leave a last one to itself. */
static struct inv_constraint needs(const struct cells_options *o, long step, long cells)
{
    bool changing = strstr(o->invade, "-changing") != NULL;
    struct inv_constraint need = {.workload = (double)(cells + (changing ? step % 2 : 0))};
    if (strstr(o->invade, "-left")) {
        double left = (double)(o->steps - step) / (double)o->steps;
        need.workload *= left * left;
        need.scalability = amdahl(o);
    }
    return need;
}

/* Answers that come too late are no reason to stop. */
static void invade(const struct cells_options *o, long step, long cells)
{
    if (o->invade[0] == 'o' || !inv_reinvade)
        return;
    struct inv_claim claim;
    struct inv_constraint need = needs(o, step, cells);
    inv_reinvade(&need, o->invade[0] == 'b' ? INV_BLOCKING : INV_NONBLOCKING, &claim);
}

int main(int argc, char **argv)
{
    struct cells_options o = cells_parse(argc, argv);
    double start = machine_now();
    cells_fill(o.cells);
    if (o.machine)
        machine_open(o.machine);
    for (long t = 0; t < o.steps; t++) {
        long cells = cells_of_step(&o, t);
        invade(&o, t, cells);
        cells_serial(&o, t, cells);
        compute_all(&o, t, cells);
    }
    printf("seconds %.6f\nchecksum %016llx\n", machine_now() - start,
           (unsigned long long)cells_checksum(o.cells));
    return 0;
}
