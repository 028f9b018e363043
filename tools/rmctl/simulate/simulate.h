/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate.h - `rmctl simulate`: the real policies and the real placement on a machine that is only
 * described, with a workload that is recorded or made up.
 *
 * A process computes piece after piece (an iteration, as a rule).  The ranks of a job go on
 * together: none begins its next piece before all have done theirs.  So MPI programs lose the cores
 * of waiting ranks.  A piece has `work` in seconds on one core, and on c cores is done at the speed
 * S(c).
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

/* From a number of cores, also with speeds ("4x1.0,4x0.6"), or hwloc's words for a synthetic machine: "package:2 numa:2 core:8 pu:2".
 * False: *why says what is wrong.  machine->apart is the caller's to free. */
bool sim_machine_parse(const char *text, struct rmd_machine *machine, char why[200]);
/* The speeds of the cores of a machine that has been parsed, in thousandths; NULL: they are alike.  The caller
 * frees them. */
unsigned short *sim_machine_speeds(const char *text, unsigned ncores);

/* --- the workload (simulate_workload.c, simulate_generate.c) */

enum { SIM_NAME = 64, SIM_PIECES = 1 << 26 };

struct sim_piece {
    double time; /* not before this */
    double work; /* seconds on one core, >= 0 */
    unsigned graph, repeat;
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

/* Each of the adders ends the program when memory is short. */
void *sim_allocate(size_t count, size_t size);
void *sim_grown(void *array, size_t count, size_t size); /* room for one more, by doubling */
unsigned sim_add_job(struct sim_workload *w, const char *name);
unsigned sim_add_process(struct sim_workload *w, const char *name, unsigned job);
unsigned sim_add_graph(struct sim_workload *w, const struct inv_scalability *points);
void sim_add_piece(struct sim_workload *w, unsigned process, struct sim_piece piece);
/* When all is added. */
void sim_workload_close(struct sim_workload *w);
void sim_workload_free(struct sim_workload *w);

/* Reads the format of rmctl-simulate(1).  False after it has told what is wrong, where, on
 * stderr. */
bool sim_workload_read(struct sim_workload *w, FILE *file, const char *name);
void sim_workload_write(const struct sim_workload *w, FILE *file);

/* "KIND,seed=N,...".  False: *why says what is wrong. */
bool sim_workload_generate(struct sim_workload *w, const char *what, unsigned ncores,
                           char why[200]);
/* The kinds that there are, and the names of numbers; NULL behind the last. */
const char *sim_generate_kind(unsigned which);
const char *sim_generate_number(unsigned which);

/* Where a process is in its pieces. */
struct sim_cursor {
    unsigned piece, done; /* done of its repetitions */
};
static inline const struct sim_piece *sim_piece_at(const struct sim_process *p,
                                                   const struct sim_cursor *at)
{
    return at->piece < p->npieces ? &p->pieces[at->piece] : NULL;
}
static inline void sim_advance(const struct sim_process *p, struct sim_cursor *at)
{
    if (at->piece < p->npieces && ++at->done >= p->pieces[at->piece].repeat)
        *at = (struct sim_cursor){at->piece + 1, 0};
}

/* What a process can use of so many cores. */
double sim_useful(const struct sim_process *p, const struct sim_graph *g, unsigned ncores);
/* When the first of its processes comes. */
double sim_job_begin(const struct sim_workload *w, unsigned job);

/* --- cores over time (simulate_series.c) */

enum { SIM_BANDS = 20, SIM_BINS = 512 };

struct sim_series {
    double bin_s; /* length of a bin; doubled as often as time goes on */
    double busy[SIM_BANDS][SIM_BINS]; /* core seconds */
};
void sim_series_add(struct sim_series *s, unsigned band, double from, double to, double cores);

/* --- schedules */

struct sim_costs {
    double move_s, lend_s; /* core seconds lost with a core that moves; is lent or reclaimed */
    double decision_s;     /* from news to new owners */
    bool ahead;            /* programs tell the work of a piece before it, not what was measured */
    struct rmd_tuning tuning;
};

struct sim_world {
    const struct sim_workload *work;
    struct rmd_machine machine;
    const unsigned short *speed; /* of each core; NULL: they are alike */
    struct sim_costs costs;
    const unsigned *band; /* by process */
    bool decisions;       /* are kept with the result */
};

/* The mean speed of these cores: 1 where they are alike.  (simulate_machine.c) */
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
    double turnaround_s; /* mean of the jobs: end less first time */
    double busy_s;       /* core seconds held by computing processes */
    double lost_s;       /* of these for moves and lends */
    double nodes;        /* mean of the NUMA nodes of a process, over the decisions */
    unsigned long decisions, changes, moves, lends, reclaims;
    double *job_end;               /* by job */
    struct sim_decision *decision; /* `decisions` of them; NULL: not kept, or none */
    struct sim_series *series;
};

/* Cores given out once, equally, to all processes that there will ever be; nothing lent.  With
 * more processes than cores each has its part of one. */
void sim_run_static(const struct sim_world *world, struct sim_result *result);
/* Job after job as they come, each with the whole machine. */
void sim_run_sequence(const struct sim_world *world, struct sim_result *result);
/* Waiting processes lend their cores.  `policy` decides how many cores each process owns; NULL:
 * owners as in static. */
void sim_run_managed(const struct sim_world *world, const struct rmd_policy *policy,
                     struct sim_result *result);

/* What no schedule can beat, not even one that knows the future. */
struct sim_bound {
    double total_s;    /* the larger of these */
    double path_s;     /* the longest job, alone on the machine */
    double capacity_s; /* all work that cannot begin before some time, on all cores after it */
    double work_s;     /* sum of the work */
    double *job_end;   /* by job: not before this */
};
struct sim_bound sim_bound_of(const struct sim_world *world);

#endif
