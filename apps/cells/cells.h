/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cells.h - a small shallow-water-like kernel whose number of cells changes, for cells.c (OpenMP)
 * and cells_tbb.cc (Threading Building Blocks), which differ in how a step's cells are shared out.
 *
 * A cell is a strip of water with periodic ends, advanced by a Rusanov scheme; cells do not touch,
 * so the result is the same with any number of threads.  No simulation of anything: it stands in
 * for one whose mesh refines and coarsens (Schreiber et al., 6.1 and 6.4).
 *
 * A step is a serial part, as long as `serial` of its cells take, and the cells.
 *
 * Emulated: a cell sleeps instead of computing, on one of the CPUs of an emulated machine that all
 * programs share (machine.h).  It notes the steps in which it was due, so that the
 * checksum tells whether every cell has had its turns, no more and no fewer.
 */
#ifndef CELLS_H
#define CELLS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "machine.h"

enum { CELLS_POINTS = 32, CELLS_MOST = 65536 };

struct cells_options {
    long steps, cells;  /* at most so many cells */
    double least;       /* part of them that there are at the beginning and at the end */
    double peak;        /* where in the run there are most, 0 to 1 */
    double serial;      /* part of a step's work that is serial */
    const char *invade; /* off, nonblocking, blocking; and -changing: another workload each step;
                           -left: one that becomes less to the end, and the scalability graph */
    const char *machine; /* emulated: the file; NULL: compute */
    double cell_us;      /* emulated: what a cell takes */
    int cpus;            /* emulated */
};

/* --- the kernel */

struct cells_cell {
    double h[CELLS_POINTS], q[CELLS_POINTS];
};
static struct cells_cell *cells_all;

static inline void cells_fill(long count)
{
    cells_all = (struct cells_cell *)malloc((size_t)count * sizeof *cells_all);
    for (long c = 0; cells_all && c < count; c++)
        for (int i = 0; i < CELLS_POINTS; i++) {
            cells_all[c].h[i] = i == (int)(c % CELLS_POINTS) ? 1.5 : 1.0;
            cells_all[c].q[i] = 0;
        }
    if (!cells_all) {
        perror("cells");
        exit(1);
    }
}

static inline void cells_advance(struct cells_cell *cell)
{
    struct cells_cell old = *cell;
    for (int i = 0; i < CELLS_POINTS; i++) {
        int l = (i + CELLS_POINTS - 1) % CELLS_POINTS, r = (i + 1) % CELLS_POINTS;
        double speed = fabs(old.q[i] / old.h[i]) + sqrt(9.81 * old.h[i]);
        double flux_l = old.q[l] * old.q[l] / old.h[l] + 4.905 * old.h[l] * old.h[l];
        double flux_r = old.q[r] * old.q[r] / old.h[r] + 4.905 * old.h[r] * old.h[r];
        double dt = 0.05;
        cell->h[i] = old.h[i] - dt * ((old.q[r] - old.q[l]) -
                                      speed * (old.h[r] - 2 * old.h[i] + old.h[l])) / 8;
        cell->q[i] = old.q[i] - dt * ((flux_r - flux_l) -
                                      speed * (old.q[r] - 2 * old.q[i] + old.q[l])) / 8;
    }
}

/* How many cells there are in step t: up to the peak, and down again. */
static inline long cells_of_step(const struct cells_options *o, long t)
{
    double x = (double)t / (double)o->steps;
    double part = x < o->peak ? x / o->peak : (1 - x) / (1 - o->peak);
    if (o->least >= 1)
        return o->cells;
    long n = (long)((o->least + (1 - o->least) * part) * (double)o->cells);
    return n > 0 ? n : 1;
}

/* Instead of advancing a cell, some ns for it. */
static inline void cells_note(struct cells_cell *cell, long step)
{
    uint64_t noted;
    memcpy(&noted, &cell->h[0], sizeof noted);
    noted = noted * 31 + (uint64_t)step + 1;
    memcpy(&cell->h[0], &noted, sizeof noted);
}

/* Cells first .. last - 1 of a step. */
static inline void cells_compute(const struct cells_options *o, long step, long first, long last)
{
    if (o->machine) {
        for (long c = first; c < last; c++)
            cells_note(&cells_all[c], step);
        machine_compute((double)(last - first) * o->cell_us, (uint32_t)o->cpus);
        return;
    }
    for (long c = first; c < last; c++)
        cells_advance(&cells_all[c]);
}

/* The part of a step that one thread does: the cells again, of which only some count. */
static inline void cells_serial(const struct cells_options *o, long step, long cells)
{
    long n = (long)(o->serial * (double)cells + 0.5);
    if (n > 0)
        cells_compute(o, step, 0, n);
}

/* The bits of all numbers, added up. */
static inline uint64_t cells_checksum(long count)
{
    uint64_t sum = 0, bits;
    for (long c = 0; c < count; c++)
        for (int i = 0; i < CELLS_POINTS; i++) {
            memcpy(&bits, &cells_all[c].h[i], sizeof bits);
            sum = sum * 31 + bits;
        }
    return sum;
}

/* NAME=VALUE words, all of them numbers but invade and machine. */
static inline struct cells_options cells_parse(int argc, char **argv)
{
    struct cells_options o = {1000, 128, 1, 0.5, 0, "off", NULL, 100, 2};
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        size_t n = value ? (size_t)(value - argv[i]) : 0;
        double number = value ? atof(value + 1) : 0;
        if (n == 5 && !memcmp(argv[i], "steps", n))
            o.steps = (long)number;
        else if (n == 5 && !memcmp(argv[i], "cells", n))
            o.cells = (long)number;
        else if (n == 5 && !memcmp(argv[i], "least", n))
            o.least = number;
        else if (n == 4 && !memcmp(argv[i], "peak", n))
            o.peak = number;
        else if (n == 6 && !memcmp(argv[i], "serial", n))
            o.serial = number;
        else if (n == 6 && !memcmp(argv[i], "invade", n))
            o.invade = value + 1;
        else if (n == 7 && !memcmp(argv[i], "machine", n))
            o.machine = value + 1;
        else if (n == 7 && !memcmp(argv[i], "cell-us", n))
            o.cell_us = number;
        else if (n == 4 && !memcmp(argv[i], "cpus", n))
            o.cpus = (int)number;
        else
            o.steps = 0;
    }
    if (o.steps < 1 || o.cells < 1 || o.cells > CELLS_MOST || o.peak <= 0 || o.peak >= 1 ||
        o.least < 0 || o.serial < 0 || o.serial > 1 || o.cpus < 1) {
        fprintf(stderr, "usage: %s [steps=N] [cells=N] [least=PART] [peak=PART] [serial=PART]\n"
                        "    [invade=off|nonblocking|blocking[-changing|-left]]\n"
                        "    [machine=FILE] [cell-us=US] [cpus=N]\n",
                argv[0]);
        exit(2);
    }
    return o;
}

#endif
