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

static void compute_all(const struct cells_options *o, long cells)
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
            cells_compute(o, first, first + mine);
        }
        return;
    }
#pragma omp parallel for schedule(static)
    for (long c = 0; c < cells; c++)
        cells_compute(o, c, c + 1);
}

/* Answers that come too late are no reason to stop. */
static void invade(const struct cells_options *o, long step, long cells)
{
    bool changing = strstr(o->invade, "-changing") != NULL;
    struct inv_claim claim;
    struct inv_constraint need = {.workload = (double)(cells + (changing ? step % 2 : 0))};
    if (o->invade[0] != 'o' && inv_reinvade)
        inv_reinvade(&need, o->invade[0] == 'b' ? INV_BLOCKING : INV_NONBLOCKING, &claim);
}

int main(int argc, char **argv)
{
    struct cells_options o = cells_parse(argc, argv);
    double start = cells_now();
    cells_fill(o.cells);
    if (o.machine)
        cells_open_machine(o.machine);
    for (long t = 0; t < o.steps; t++) {
        long cells = cells_of_step(&o, t);
        invade(&o, t, cells);
        cells_serial(&o, cells);
        compute_all(&o, cells);
    }
    printf("seconds %.6f\nchecksum %016llx\n", cells_now() - start,
           (unsigned long long)cells_checksum(o.cells));
    return 0;
}
