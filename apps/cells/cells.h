/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cells.h - a small shallow-water-like kernel whose number of cells changes, for cells.c (OpenMP)
 * and cells_tbb.cc (Threading Building Blocks), which differ in how a step's cells are shared out.
 *
 * A cell is a strip of water with periodic ends, advanced by a Rusanov scheme; cells do not touch,
 * so the result is the same with any number of threads.  No simulation of anything: it stands in
 * for one whose mesh refines and coarsens (papers/invasive-compute-balancing.txt 6.1, 6.4).
 *
 * A step is a serial part, as long as `serial` of its cells take, and the cells.
 *
 * Emulated: a cell sleeps instead of computing, on one of the CPUs of an emulated machine that all
 * programs share (a file).  Who finds no CPU free waits in line for one, and gives its CPU up
 * after a time slice if somebody waits: threads that are more than the CPUs share them, at no
 * cost, as with a perfect kernel.
 */
#ifndef CELLS_H
#define CELLS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

static inline double cells_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- an emulated machine */

enum { CELLS_LINE = 4096 };
static const double cells_slice_us = 3000;
struct cells_machine {
    uint32_t next;    /* number of who comes next */
    uint32_t served;  /* numbers below it have, or had, a CPU */
    uint32_t called[CELLS_LINE]; /* futexes: number + 1 of the last of this place to be called */
};
static struct cells_machine *cells_machine;
static pthread_key_t cells_late_ns;

/* A file of zeros, made by whoever starts the programs. */
static inline void cells_open_machine(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *memory = MAP_FAILED;
    if (fd >= 0)
        memory = mmap(NULL, sizeof *cells_machine, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "cells: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
    cells_machine = (struct cells_machine *)memory;
    if (pthread_key_create(&cells_late_ns, NULL)) {
        fprintf(stderr, "cells: too many keys\n");
        exit(1);
    }
    prctl(PR_SET_TIMERSLACK, 1); /* ns, also of threads that we make; the default is 50 us */
}

static inline void cells_get_cpu(uint32_t cpus)
{
    uint32_t number = __atomic_fetch_add(&cells_machine->next, 1, __ATOMIC_SEQ_CST);
    uint32_t *called = &cells_machine->called[number % CELLS_LINE], seen;
    if ((int32_t)(number - __atomic_load_n(&cells_machine->served, __ATOMIC_SEQ_CST)) <
        (int32_t)cpus)
        return;
    while ((int32_t)((seen = __atomic_load_n(called, __ATOMIC_SEQ_CST)) - (number + 1)) < 0)
        syscall(SYS_futex, called, FUTEX_WAIT, seen, NULL, NULL, 0);
}

/* The first in line is called, or whoever will be when it comes. */
static inline void cells_put_cpu(uint32_t cpus)
{
    uint32_t number = __atomic_fetch_add(&cells_machine->served, 1, __ATOMIC_SEQ_CST) + cpus;
    uint32_t *called = &cells_machine->called[number % CELLS_LINE];
    __atomic_store_n(called, number + 1, __ATOMIC_SEQ_CST);
    if ((int32_t)(__atomic_load_n(&cells_machine->next, __ATOMIC_SEQ_CST) - number) > 0)
        syscall(SYS_futex, called, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline int cells_somebody_waits(uint32_t cpus)
{
    return (int32_t)(__atomic_load_n(&cells_machine->next, __ATOMIC_SEQ_CST) -
                     __atomic_load_n(&cells_machine->served, __ATOMIC_SEQ_CST)) > (int32_t)cpus;
}

/* What the emulated CPU does for so long.  Sleeps are late; what one is late is taken off the
 * thread's next.  Not by a thread-local variable: in a program that has one, thread numbers stay
 * with their kernel threads, and cores that come help nobody (INVASIVE_BIND). */
static inline void cells_emulate(double us, uint32_t cpus)
{
    double left = us - 1e-3 * (double)(intptr_t)pthread_getspecific(cells_late_ns);
    while (left > 0) {
        double slice = left < cells_slice_us ? left : cells_slice_us;
        cells_get_cpu(cpus);
        do {
            double start = cells_now();
            struct timespec t = {(time_t)(slice * 1e-6), (long)(fmod(slice, 1e6) * 1e3)};
            nanosleep(&t, NULL);
            left -= (cells_now() - start) * 1e6;
            slice = left < cells_slice_us ? left : cells_slice_us;
        } while (left > 0 && !cells_somebody_waits(cpus));
        cells_put_cpu(cpus);
    }
    double late_us = -left < cells_slice_us ? -left : cells_slice_us;
    pthread_setspecific(cells_late_ns, (void *)(intptr_t)(1e3 * late_us));
}

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

/* Cells first .. last - 1 of a step. */
static inline void cells_compute(const struct cells_options *o, long first, long last)
{
    if (o->machine) {
        cells_emulate((double)(last - first) * o->cell_us, (uint32_t)o->cpus);
        return;
    }
    for (long c = first; c < last; c++)
        cells_advance(&cells_all[c]);
}

/* The part of a step that one thread does: the cells again, of which only some count. */
static inline void cells_serial(const struct cells_options *o, long cells)
{
    long n = (long)(o->serial * (double)cells + 0.5);
    if (n > 0)
        cells_compute(o, 0, n);
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
