/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate.h - `rmctl simulate`: the real policies and the real placement on an emulated machine,
 * with a workload that is recorded or generated.
 *
 * A process computes piece after piece (as a rule a piece is an iteration).  The ranks of a job
 * stay together: a rank begins its next piece when all ranks have done theirs.  Meanwhile the cores
 * of ranks that are done are idle, as in MPI programs.  A piece has `work` in seconds on one core,
 * and is done at the speed S(c) on c cores.
 *
 * Times are seconds from the beginning.  Everything is a function of the options and the
 * workload: no clock, no threads.
 */
#ifndef RMD_SIMULATE_H
#define RMD_SIMULATE_H

#include "rmd/policy/curve.h"
#include "rmd/placement/placement.h"
#include "rmd/policy/policy.h"

#include <stdbool.h>
#include <stdio.h>

/* --- the machine (simulate_machine.c) */

/* Parses a number of cores, with or without speeds ("8", "4x1.0,4x0.6"), or hwloc's words for a
 * synthetic machine ("package:2 numa:2 core:8 pu:2").  False: *why says what is wrong.  The caller
 * frees machine->apart. */
bool sim_machine_parse(const char *text, struct rmd_machine *machine, char why[200]);
/* The speeds of the cores of a machine that has been parsed, in thousandths; NULL: all are the
 * same.  The caller frees the array. */
unsigned short *sim_machine_speeds(const char *text, unsigned ncores);

/* --- the workload (simulate_workload.c, simulate_generate.c) */

enum { SIM_NAME = 64, SIM_PIECES = 1 << 26 };

struct sim_piece {
    double time; /* earliest begin, seconds */
    double work; /* seconds on one core, >= 0 */
    unsigned graph, repeat; /* index in graphs[]; how many times it is done */
};

struct sim_process {
    char name[SIM_NAME];
    unsigned job;
    unsigned min_cores, max_cores; /* 0: no limit */
    unsigned npieces, capacity;
    struct sim_piece *pieces;
};

struct sim_graph {
    struct inv_scalability points; /* as announced; none: not known, taken as perfect */
    struct rmd_curve curve;
};

struct sim_job {
    char name[SIM_NAME];
    unsigned first, count; /* of member[] */
};

struct sim_workload {
    unsigned nprocs, njobs, ngraphs;
    struct sim_process *procs;
    struct sim_job *jobs;
    struct sim_graph *graphs;
    unsigned *member; /* processes by job; sim_workload_close */
};

/* These end the program when memory is short.  sim_allocate: zeroed memory, which the caller frees.
 * sim_grown: `array` of `count` elements with room for one more, by doubling.  sim_add_job,
 * _process and _graph return the index of the new element. */
void *sim_allocate(size_t count, size_t size);
void *sim_grown(void *array, size_t count, size_t size);
unsigned sim_add_job(struct sim_workload *w, const char *name);
unsigned sim_add_process(struct sim_workload *w, const char *name, unsigned job);
unsigned sim_add_graph(struct sim_workload *w, const struct inv_scalability *points);
void sim_add_piece(struct sim_workload *w, unsigned process, struct sim_piece piece);
/* Completes the workload, after everything has been added. */
void sim_workload_close(struct sim_workload *w);
void sim_workload_free(struct sim_workload *w);

/* Reads the format of rmctl-simulate(1).  False: stderr has been told what is wrong, and in which
 * line. */
bool sim_workload_read(struct sim_workload *w, FILE *file, const char *name);
void sim_workload_write(const struct sim_workload *w, FILE *file);

/* "KIND,seed=N,...".  False: *why says what is wrong. */
bool sim_workload_generate(struct sim_workload *w, const char *what, unsigned ncores,
                           char why[200]);
/* The names of the kinds, and of the numbers, from 0 on; NULL after the last one. */
const char *sim_generate_kind(unsigned which);
const char *sim_generate_number(unsigned which);

/* The position of a process in its pieces. */
struct sim_cursor {
    unsigned piece, done; /* index of the present piece; repetitions of it that are done */
};
/* The present piece; NULL: all are done. */
static inline const struct sim_piece *sim_piece_at(const struct sim_process *p,
                                                   const struct sim_cursor *at)
{
    return at->piece < p->npieces ? &p->pieces[at->piece] : NULL;
}
/* A repetition of the present piece is done. */
static inline void sim_advance(const struct sim_process *p, struct sim_cursor *at)
{
    if (at->piece < p->npieces && ++at->done >= p->pieces[at->piece].repeat)
        *at = (struct sim_cursor){at->piece + 1, 0};
}

/* How many of `ncores` cores the process can use, by its range and this graph. */
double sim_useful(const struct sim_process *p, const struct sim_graph *g, unsigned ncores);
/* The earliest begin of a piece of the job, seconds. */
double sim_job_begin(const struct sim_workload *w, unsigned job);

/* --- cores over time (simulate_series.c) */

enum { SIM_BANDS = 20, SIM_BINS = 512 };

struct sim_series {
    double bin_s; /* length of a bin, seconds; doubled when the bins are full */
    double busy[SIM_BANDS][SIM_BINS]; /* core seconds */
};
/* Processes of the band computed on `cores` cores from `from` to `to` (seconds). */
void sim_series_add(struct sim_series *s, unsigned band, double from, double to, double cores);

/* --- schedules */

struct sim_costs {
    double move_s, lend_s; /* core seconds lost when a core gets another owner; is lent or
                              reclaimed */
    double decision_s;     /* seconds from a change to new owners */
    bool ahead;            /* processes announce the work of a piece before they begin it */
    struct rmd_tuning tuning;
};

struct sim_world {
    const struct sim_workload *work;
    struct rmd_machine machine;
    const unsigned short *speed; /* of each core, in thousandths; NULL: all are the same */
    struct sim_costs costs;
    const unsigned *band; /* by process */
    bool decisions;       /* keep the decisions in the result */
};

/* The mean speed of cores first ... first + count - 1; 1: all cores have the same.
 * (simulate_machine.c) */
double sim_speed_of(const struct sim_world *world, unsigned first, unsigned count);

enum sim_outcome { SIM_MEMBERS_CHANGED, SIM_WORTHWHILE, SIM_NOT_WORTHWHILE };

struct sim_decision {
    double time, gain; /* gain: of throughput, as a part, <= 1 */
    unsigned processes, moved;
    enum sim_outcome outcome;
};

struct sim_result {
    const char *name, *about;
    double makespan_s;
    double turnaround_s; /* mean over the jobs: from begin to end */
    double busy_s;       /* core seconds held by computing processes */
    double lost_s;       /* the part of these that is lost by moves and lends */
    double nodes;        /* mean number of NUMA nodes of a process, over the decisions */
    unsigned long decisions, changes, moves, lends, reclaims;
    double *job_end;               /* by job */
    struct sim_decision *decision; /* array of `decisions`; NULL: not kept, or there were none */
    struct sim_series *series;
};

/* Schedule: the cores are divided once, equally, among all processes of the workload, and none is
 * lent.  With more processes than cores each process has the same part of a core. */
void sim_run_static(const struct sim_world *world, struct sim_result *result);
/* Schedule: one job after the other, in the order of their begin, each with the whole machine. */
void sim_run_sequence(const struct sim_world *world, struct sim_result *result);
/* Schedule: waiting processes lend their cores.  `policy` decides how many cores each process owns;
 * NULL: as in sim_run_static. */
void sim_run_managed(const struct sim_world *world, const struct rmd_policy *policy,
                     struct sim_result *result);

/* Lower bounds of the makespan of any schedule, even of one that knows the future.  Seconds. */
struct sim_bound {
    double total_s;    /* the larger of the next two */
    double path_s;     /* end of the last job, if each is alone on the machine */
    double capacity_s; /* for any time: end of the work that cannot begin earlier, on all cores */
    double work_s;     /* sum of the work, on one core */
    double *job_end;   /* by job: it ends no earlier; the caller frees the array */
};
struct sim_bound sim_bound_of(const struct sim_world *world);

#endif
