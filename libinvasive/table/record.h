/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * record.h - what a process writes down for `invade --report` while it runs: where it
 * waited, its classes of iterations, its parallel regions, its CPU time.
 *
 * Each slot of the core table has room for one record, so the record stays readable whatever ends
 * the process; rmd takes a copy before the slot is used again.  A record is written only if
 * INVASIVE_REPORT names the launch, and its sites also for a trace, whose events have the numbers
 * of sites that waited.  Untouched memory costs nothing.
 *
 * Writer: the process that has the slot, from any of its threads.  Statistics: all accesses
 * are relaxed except where a partner is named.  Readers believe none of it (invade_model.c).
 */
#ifndef INV_RECORD_H
#define INV_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

enum {
#ifndef INV_SMALL
    INV_SITES = 256,    /* call sites; those without room are added up in the first one */
    INV_FUNCTIONS = 64, /* outlined functions; the same */
    INV_MODULES = 8,    /* files of these functions; functions of further files have no name */
#else
    INV_SITES = 16,
    INV_FUNCTIONS = 4,
    INV_MODULES = 2,
#endif
    INV_CONTROLS = 8, /* control points */
    INV_CONTROL_VALUES = 33,
    INV_CONTROL_BYTES = 48,
    INV_CLASSES = 16, /* classes of iterations */
    INV_SAMPLES = 64, /* a power of two */
    INV_FUNCTION_BYTES = 48,
    INV_SYMBOL_BYTES = 96,
    INV_MODULE_BYTES = 248,
};

/* Where a node has at least so many ranks for each core, teams of one thread are the default (proc.c of
 * libgomp-invasive), and a report does not advise larger ones. */
enum { INV_SEVERAL_RANKS = 2 };

/* A place of the program that calls an MPI function. */
struct inv_site {
    _Atomic uint64_t calls;         /* made from here */
    _Atomic uint64_t slept;         /* waits that gave the core away */
    _Atomic uint64_t waited_ticks;  /* time in waits, all threads */
    _Atomic uint64_t longest_ticks; /* of one wait */
    /* release: what follows has been written; partner: the reader of a record */
    _Atomic uint32_t named;
    uint32_t unused;
    uint64_t offset; /* the call's return address less the module's load address: as in the module's
                        symbol table */
    char function[INV_FUNCTION_BYTES]; /* "Allreduce" */
    char symbol[INV_SYMBOL_BYTES];     /* dynamic symbol of the calling function, "" none */
    char module[INV_MODULE_BYTES];     /* its file; of a longer name the end */
} __attribute__((aligned(64)));

/* Iterations that go through the same call sites; mpi-shim's struct shim_iteration_class. */
struct inv_class {
    _Atomic uint64_t sites, count, length_ns, useful_ns, wait_ns, core_ns;
};

/* What a process has computed until the end of an iteration; see mpi-shim/measure/estimate.c. */
struct inv_sample {
    _Atomic uint64_t ticks; /* of the processor's counter */
    _Atomic uint64_t unmoved_ns, useful_ns;
};

/* A function that the compiler has outlined from a parallel region, and all regions of it that had more
 * than one thread.  Writer: the OpenMP runtime (libgomp-invasive/region/costs.c), which counts the first
 * four in each region and estimates the others from samples. */
struct inv_function {
    _Atomic uint64_t regions;
    _Atomic uint64_t threads;    /* sum of team sizes */
    _Atomic uint64_t barriers;   /* that the teams have passed */
    _Atomic uint64_t sleeps;     /* of implicit tasks that are kernel threads, inside a region */
    _Atomic uint64_t elapsed_ns; /* from the beginnings to the ends, sum */
    _Atomic uint64_t cores;      /* that the process computed on, or could: sum over regions */
    _Atomic uint64_t switches;   /* of contexts that waited or ended */
    _Atomic uint64_t code_ns;    /* that implicit tasks spent outside barriers, sum */
    _Atomic uint32_t tasks;      /* there were explicit tasks, so that code_ns says nothing */
    /* module + 1; 0: not named yet.  release: offset has been written; partner: a reader of the record */
    _Atomic uint32_t named;
    uint64_t offset; /* address of the function less the module's load address */
};

/* A control point: what has been tried, and what is in use.  Writer: record/control_point.c. */
struct inv_control_point {
    char name[INV_CONTROL_BYTES];
    _Atomic int32_t low, high, first, now; /* the range, the program's own value, the one in use */
    _Atomic uint32_t settled, searches;    /* is the search over; how many there have been */
    _Atomic uint32_t values;               /* that may be tried; the numbers of each follow: */
    _Atomic int32_t value[INV_CONTROL_VALUES];
    _Atomic uint64_t median_ns[INV_CONTROL_VALUES]; /* of an iteration; 0: it has not been tried */
    _Atomic uint64_t iterations[INV_CONTROL_VALUES];
};

struct inv_record {
    _Atomic uint64_t launch; /* INVASIVE_REPORT, a number; 0: nothing is reported */
    _Atomic uint64_t job;    /* the same in processes that share MPI_COMM_WORLD; 0: no MPI */
    _Atomic uint32_t exited; /* it ran its exit handlers */
    _Atomic uint32_t classes; /* number of class[] */
    _Atomic uint32_t sites;   /* number of site[] that has been asked for; may exceed INV_SITES */
    _Atomic uint32_t waiting_site; /* where it sleeps, while waiting_since_ns is not 0 */
    _Atomic uint32_t launched; /* ranks that the launcher has started, if more than one and the size
                                  of MPI_COMM_WORLD is 1; else 0 */
    /* CLOCK_MONOTONIC, 0 not yet: */
    _Atomic uint64_t from_ns;           /* MPI_Init has ended: the reported time begins */
    _Atomic uint64_t until_ns;          /* MPI_Finalize, or exit handlers: the reported time ends */
    _Atomic uint64_t counted_ns;        /* time of the latest counters of the slot, and classes */
    _Atomic uint64_t published_ns;      /* time of the latest CPU time */
    _Atomic uint64_t waiting_since_ns;  /* the main thread sleeps in a wait since then */
    _Atomic uint64_t cpu_start_ns;      /* CPU time of the process at the beginning, */
    _Atomic uint64_t cpu_ns;            /* and now; 0: not known */
    _Atomic uint64_t spun_ns;           /* CPU time, part of it, in waits for MPI */
    _Atomic uint64_t ticks_per_ms;      /* unit of the sites' times; 0: not known yet */
    /* Written by the first rank of a job on its node.  Sums over iterations: the useful time of the
     * slowest rank; the same if no core had moved; the length of the iterations in these sums */
    _Atomic uint64_t slowest_ns, slowest_unmoved_ns, judged_ns;
    _Atomic uint64_t samples;              /* ever written; release, after the sample */
    struct inv_sample sample[INV_SAMPLES]; /* the latest ones; number i at i modulo INV_SAMPLES */
    struct inv_class class[INV_CLASSES];
    /* Written by the OpenMP runtime.  The largest team that an outermost region has asked for; 0:
     * there was no region.  And some switches from context to context, with the time that they
     * took. */
    _Atomic uint32_t team_threads;
    _Atomic uint32_t functions; /* number of function[] that has been asked for; may exceed
                                   INV_FUNCTIONS */
    _Atomic uint64_t switches_timed, switches_ns;
    _Atomic uint32_t controls; /* number of control[]; release: they have names; partner: a
                                  reader */
    struct inv_control_point control[INV_CONTROLS];
    /* tied_by: why implicit tasks stay on their kernel threads (tls.h of libgomp-invasive): the
     * name of a loaded file ("": the program), of a variable, or of what forbids a change of
     * stacks, such as "shadow stacks".  tied: 1: tied_by has been written (release; partner: a
     * reader of the record); 0: implicit tasks are contexts, or there was no region */
    _Atomic uint32_t tied;
    char tied_by[INV_FUNCTION_BYTES];
    char module[INV_MODULES][INV_MODULE_BYTES]; /* files; of a longer name the end */
    struct inv_function function[INV_FUNCTIONS];
    struct inv_site site[INV_SITES];
} __attribute__((aligned(4096)));

#endif
