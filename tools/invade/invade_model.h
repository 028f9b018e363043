/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_model.h - the data of a report, which is printed as text or as JSON: the launch, its jobs,
 * their processes, call sites and classes of iterations.  Seconds and core-seconds are doubles.
 */
#ifndef INVADE_MODEL_H
#define INVADE_MODEL_H

#include "client/client.h"

#include <stdbool.h>
#include <stdio.h>

/* POP metrics, from 0 to 1; invade(1) has the formulae. */
struct metrics {
    double parallel_efficiency, load_balance, communication_efficiency;
    double work_balance; /* of the work as the program divides it among its ranks */
    double gain;         /* part of the time that perfect balance would still save */
};

/* A place of the program. */
struct place {
    char symbol[256], module[INV_MODULE_BYTES], line[512]; /* printable; "" unknown */
    char file[INV_MODULE_BYTES];                           /* the module's path, not made
                                                              printable */
    uint64_t offset; /* in the module */
    bool entry; /* the place is the begin of a function; else the return address of a call */
    bool other; /* this stands for all places for which the record had no room */
};

struct site {
    struct place place; /* places_resolve */
    char function[INV_FUNCTION_BYTES]; /* "MPI_Recv"; printable */
    uint64_t calls, slept;
    double waited, longest;
    unsigned processes; /* number of the job's processes that have it */
};

struct sites {
    struct site *at; /* sites where a process waited, the longest waits first */
    unsigned count;
};

/* A function outlined from a parallel region; sums over its regions. */
struct function {
    struct place place; /* places_resolve */
    uint64_t regions, threads, barriers, sleeps, switches;
    double elapsed;
    double outside; /* core-seconds outside the code of implicit tasks; negative: not known */
    double saving;  /* seconds that teams of the cores would save */
    unsigned processes;
};

struct functions {
    struct function *at; /* those with most time first */
    unsigned count;
};

/* A control point of a process (invasive.h). */
struct control {
    char name[INV_CONTROL_BYTES]; /* printable */
    int low, high, first, now;    /* the range; the program's own value; the one in use */
    bool settled;
    uint64_t searches, iterations; /* iterations: sum over the values */
    struct tried {
        int value;
        uint64_t iterations;
        double median; /* seconds; NaN: not known */
    } tried[INV_CONTROL_VALUES]; /* rising values */
    unsigned count; /* of tried[] */
};

struct class {
    uint64_t sites, count;
    double length, useful, waiting, core; /* sums over all iterations */
    double most_useful;                   /* of a job: the most of one of its processes */
    struct metrics metrics;
};

/* Processes that share a core table: a node or, if a node has two tables, one of its tables. */
struct node {
    uint64_t number; /* 0: the node where invade runs */
    unsigned cores;
    char name[INV_HOST_BYTES];
};

struct process {
    const struct inv_report *counters;
    const struct inv_record *record; /* NULL: it kept none */
    unsigned room;                   /* sites in it */
    uint64_t job;
    unsigned node;   /* index in the launch */
    const char *end; /* "exited", "finalized", "killed", "running", "unmanaged", "unknown" */
    double from, until;      /* seconds since the first process began */
    double useful, waiting;  /* its main thread, outside and inside waits */
    double core, owned, cpu; /* core-seconds: useful, owned; CPU time, negative when unknown */
    double energy;           /* joules; NaN: not known, as in the sums of it below */
    struct metrics metrics;  /* gain unused */
    struct class class[INV_CLASSES];
    unsigned classes;
    struct sites sites;
    struct functions functions;
    struct control *controls;
    unsigned ncontrols;
    unsigned team_threads; /* the largest team; 0: it had none */
    char tied_by[INV_FUNCTION_BYTES]; /* what keeps its implicit tasks on kernel threads; "": nothing */
    double switching;      /* mean seconds of a context switch; 0: none was timed */
    double team_cost;      /* seconds that teams of the cores would save */
};

struct job {
    struct process *at; /* ranks in their order */
    unsigned count;
    int size;         /* of MPI_COMM_WORLD; 0: a program without MPI */
    unsigned missing; /* ranks of which nothing is known here */
    unsigned launched; /* ranks that its launcher has started, if MPI knows of this one only; else
                          0 */
    double from, until, cores;
    double useful_core; /* core-seconds */
    double energy;
    struct metrics metrics;
    double unmoved;     /* seconds, had no core moved; NaN: not known */
    bool unmoved_least; /* it is a bound */
    struct class class[INV_CLASSES];
    unsigned classes;
    struct sites sites;
    struct functions functions;
    double team_cost; /* the mean of its processes' */
    /* Processes whose teams are smaller than the cores, the largest of these, and the most seconds that
     * larger ones would save. */
    unsigned small_teams, small_threads;
    double small_gain;
};

struct launch {
    struct rmd_client_report *reports;
    char **command;
    int status; /* as of waitpid */
    unsigned ncores; /* of all nodes; of this one when it is given to launch_fill */
    unsigned count, njobs, nnodes;
    bool anonymous, emulated;
    bool beside; /* the resource manager may serve other launches, too, whose cores are not
                    counted */
    double elapsed;
    double efficiency; /* of all jobs together */
    double energy;
    enum inv_energy counters; /* those of this node */
    double capacity, others; /* core-seconds: of our cores while the command ran, and what other
                                programs had of them; negative: not known */
    struct node *nodes; /* this one first */
    struct process *processes;
    struct job *jobs;
};

/* Fills the launch from reports, whose contents may be anything, and which it owns from now on.
 * False: no memory. */
bool launch_fill(struct launch *launch, struct rmd_client_report *reports, unsigned count);
void launch_free(struct launch *launch);

/* invade_regions.c: fills the functions of a process, on a node of `cores` cores; those of a job,
 * of all its processes; and a job's small teams, when its metrics are known.  False: no memory. */
bool regions_fill(struct process *process, unsigned cores);
bool regions_merge(struct job *job);
void regions_small_teams(struct job *job, const struct launch *launch);

/* invade_controls.c: fills the control points of a process.  False: no memory. */
bool controls_fill(struct process *process);

/* invade_symbols.c: finds names and source lines of places, as far as addr2line knows them.
 *   first  an array of `count` structs of `bytes` bytes each, whose first member is a struct
 * place */
void places_resolve(void *first, size_t bytes, unsigned count);

/* invade_text.c: prints the report. */
void launch_print(FILE *to, struct launch *launch);
/* invade_json.c: writes the report to the file, which exists as a whole or not at all.  launch
 * NULL: the command ran unmanaged.  False with errno. */
bool launch_write_json(const char *file, struct launch *launch, char **command);
/* The same as text, without call sites; the caller frees it.  NULL: no memory. */
char *launch_json_text(struct launch *launch, char **command);

#endif
