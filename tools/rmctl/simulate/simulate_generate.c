/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_generate.c - generates workloads, the same ones for the same seed.
 *
 *   constant   one MPI job whose ranks have unequal work, always the same
 *   changing   one MPI job; a wave of work goes over its ranks
 *   study      programs of one process, started one after the other, whose work grows and falls
 *              (Schreiber et al., 6.4: five, 2 s apart)
 *   bursty     programs that come at random times and pause between bursts of random length
 *   crowd      jobs of all sizes that come during the first pieces, some of each kind
 */
#define _GNU_SOURCE
#include "tools/rmctl/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct random_workload {
    const char *kind;
    unsigned ncores;
    uint64_t seed;
    unsigned processes, ranks, pieces; /* ranks of a job; pieces of a process */
    double seconds;                    /* of a piece of average work on an equal share of the
                                          cores */
    double apart_s;                    /* seconds from the begin of a program to that of the next */
    double serial;                     /* part of the work that more cores do not speed up */
};

/* [0, 1) (splitmix64) */
static double random_unit(struct random_workload *r)
{
    uint64_t x = r->seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

/* Amdahl's law at powers of the number of cores; a program without a serial part has no graph. */
static unsigned graph_of(struct sim_workload *w, const struct random_workload *r, double serial)
{
    struct inv_scalability s = {0};
    unsigned n = 0, last = 0;
    for (unsigned k = 0; k < INV_SCALABILITY_POINTS && serial > 0; k++) {
        double part = (double)k / (INV_SCALABILITY_POINTS - 1);
        unsigned cores = (unsigned)lround(pow(r->ncores, part));
        if (cores <= last)
            continue;
        s.point[n].cores = last = cores;
        s.point[n++].speedup = (float)(1 / (serial + (1 - serial) / cores));
    }
    return sim_add_graph(w, &s);
}

static unsigned add_named(struct sim_workload *w, const char *what, unsigned number, int job)
{
    char name[SIM_NAME];
    snprintf(name, sizeof name, "%s%u", what, number);
    return job < 0 ? sim_add_job(w, name) : sim_add_process(w, name, (unsigned)job);
}

/* Seconds on one core of a piece of average work. */
static double average_work(const struct random_workload *r)
{
    return r->seconds * r->ncores / r->processes;
}

enum shape { CONSTANT, CHANGING, GROWING, BURSTY, SHAPES };

/* Work of rank `of` of n when `part` of the pieces are done, about 1 on average; `own` is the
 * rank's own number in [0, 1). */
static double work_at(enum shape shape, double own, unsigned of, unsigned n, double part)
{
    double distance;
    switch (shape) {
    case CONSTANT:
        return 0.4 + 1.2 * own;
    case CHANGING: /* a bump a third of the ranks wide, once round */
        distance = fabs((double)of / n - part);
        distance = fmin(distance, 1 - distance);
        return (0.4 + 2.4 * exp(-18 * distance * distance)) * (0.9 + 0.2 * own);
    case GROWING:
        return 0.3 + 1.4 * sin(M_PI * part) * (0.6 + 0.8 * own);
    default:
        return fmin(-log(1 - own), 3);
    }
}

/* The pieces of a rank.  Bursts are three to ten pieces long, and so are the pauses. */
static void add_pieces(struct sim_workload *w, struct random_workload *r, unsigned process,
                       enum shape shape, unsigned rank, unsigned ranks, double time, unsigned graph)
{
    double own = random_unit(r);
    unsigned burst = 0;
    for (unsigned k = 0; k < r->pieces; k++) {
        double part = (k + 0.5) / r->pieces;
        if (shape == BURSTY && !burst--) {
            burst = 2 + (unsigned)(8 * random_unit(r));
            own = random_unit(r);
            time += k ? 2 * burst * r->seconds * random_unit(r) : 0;
        }
        double work = average_work(r) * work_at(shape, own, rank, ranks, part);
        sim_add_piece(w, process, (struct sim_piece){time, work, graph, 1});
    }
}

static void add_one_job(struct sim_workload *w, struct random_workload *r, enum shape shape,
                        unsigned ranks, double time, unsigned graph)
{
    unsigned job = add_named(w, "job", w->njobs, -1);
    for (unsigned k = 0; k < ranks; k++) {
        unsigned p = add_named(w, "p", w->nprocs, (int)job);
        add_pieces(w, r, p, shape, k, ranks, time, graph);
    }
}

static void make_jobs(struct sim_workload *w, struct random_workload *r, enum shape shape)
{
    unsigned graph = graph_of(w, r, r->serial);
    while (w->nprocs < r->processes) {
        unsigned left = r->processes - w->nprocs;
        double time =
            shape == BURSTY ? random_unit(r) * r->apart_s * r->processes : r->apart_s * w->njobs;
        add_one_job(w, r, shape, r->ranks < left ? r->ranks : left, time, graph);
    }
}

/* Sizes from 1 to 64 ranks, small ones more often. */
static void make_crowd(struct sim_workload *w, struct random_workload *r)
{
    unsigned graph[4];
    for (unsigned g = 0; g < 4; g++)
        graph[g] = graph_of(w, r, r->serial * g / 2);
    while (w->nprocs < r->processes) {
        unsigned left = r->processes - w->nprocs;
        unsigned ranks = 1u << (unsigned)(7 * random_unit(r) * random_unit(r));
        enum shape shape = (enum shape)(unsigned)(SHAPES * random_unit(r));
        double time = r->apart_s * floor(10 * random_unit(r));
        add_one_job(w, r, shape, ranks < left ? ranks : left, time,
                    graph[(unsigned)(4 * random_unit(r))]);
    }
}

static const struct {
    const char *name;
    enum shape shape;
} kinds[] = {{"constant", CONSTANT}, {"changing", CHANGING}, {"study", GROWING},
             {"bursty", BURSTY},     {"crowd", SHAPES},      {NULL, SHAPES}};

static void take_defaults(struct random_workload *r, enum shape shape)
{
    unsigned some = r->ncores < 16 ? r->ncores : 16;
    unsigned many = r->ncores / 10 > 4 ? r->ncores / 10 : 4;
    bool one_job = shape == CONSTANT || shape == CHANGING;
    r->processes = one_job ? some : shape == GROWING ? 5 : shape == BURSTY ? 2 * some : many;
    r->pieces = shape == SHAPES ? 20 : 200;
    r->seconds = shape == SHAPES ? 1 : 0.05;
    r->apart_s = shape == GROWING ? 2 : shape == BURSTY ? 0.5 : shape == SHAPES ? 1 : 0;
    r->serial = shape == GROWING ? 0.03 : shape == BURSTY || shape == SHAPES ? 0.01 : 0;
    r->ranks = 0;
}

struct number {
    const char *name;
    double least, most;
    bool whole;
};
static const struct number numbers[] = {
    {"seed", 0, 1e15, true},       {"processes", 1, 1e6, true}, {"ranks", 1, 1e6, true},
    {"pieces", 1, 1e6, true},      {"seconds", 1e-6, 1e6, false}, {"apart", 0, 1e6, false},
    {"serial", 0, 0.99, false},    {NULL, 0, 0, false}};

const char *sim_generate_kind(unsigned which)
{
    return kinds[which].name;
}

const char *sim_generate_number(unsigned which)
{
    return numbers[which].name;
}

static void set_number(struct random_workload *r, unsigned which, double x)
{
    switch (which) {
    case 0: r->seed = (uint64_t)x; break;
    case 1: r->processes = (unsigned)x; break;
    case 2: r->ranks = (unsigned)x; break;
    case 3: r->pieces = (unsigned)x; break;
    case 4: r->seconds = x; break;
    case 5: r->apart_s = x; break;
    default: r->serial = x; break;
    }
}

/* "NAME=NUMBER" */
static bool take_number(struct random_workload *r, const char *word, char why[200])
{
    const char *equals = strchr(word, '=');
    for (unsigned k = 0; equals && numbers[k].name; k++) {
        const struct number *n = &numbers[k];
        if (strlen(n->name) != (size_t)(equals - word) ||
            strncmp(n->name, word, strlen(n->name)) != 0)
            continue;
        char *end;
        double x = strtod(equals + 1, &end);
        if (end == equals + 1 || *end || !(x >= n->least && x <= n->most) ||
            (n->whole && x != floor(x))) {
            snprintf(why, 200, "'%.60s': %s is a %snumber from %g to %g", word, n->name,
                     n->whole ? "whole " : "", n->least, n->most);
            return false;
        }
        set_number(r, k, x);
        return true;
    }
    snprintf(why, 200, "'%.60s' is not seed, processes, ranks, pieces, seconds, apart or serial "
                       "with =NUMBER", word);
    return false;
}

bool sim_workload_generate(struct sim_workload *w, const char *what, unsigned ncores, char why[200])
{
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", what);
    char *word = strsep(&rest, ",");
    unsigned k = 0;
    while (kinds[k].name && strcmp(kinds[k].name, word) != 0)
        k++;
    if (!kinds[k].name) {
        snprintf(why, 200, "'%.60s' is not constant, changing, study, bursty or crowd", word);
        return false;
    }
    struct random_workload r = {.kind = kinds[k].name, .ncores = ncores, .seed = 1};
    take_defaults(&r, kinds[k].shape);
    while ((word = strsep(&rest, ",")))
        if (!take_number(&r, word, why))
            return false;
    if ((double)r.processes * r.pieces > SIM_PIECES) {
        snprintf(why, 200, "processes * pieces is more than %d", SIM_PIECES);
        return false;
    }
    if (!r.ranks)
        r.ranks = kinds[k].shape == CONSTANT || kinds[k].shape == CHANGING ? r.processes : 1;
    if (kinds[k].shape == SHAPES)
        make_crowd(w, &r);
    else
        make_jobs(w, &r, kinds[k].shape);
    sim_workload_close(w);
    return true;
}
