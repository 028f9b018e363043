/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * imbalance.c - a constant load imbalance: in every iteration each rank computes its share of a
 * fixed amount of work in static `parallel for` loops and then waits for the others in an
 * allreduce.  Plain MPI+OpenMP.
 *
 * The work is counted in units of a fixed integer recurrence of about a microsecond, so that two
 * runs with the same number of units do exactly the same; rank 0 measures how many units make a
 * millisecond, or --units-per-ms says it.  The wait is a blocking call, or a loop that polls
 * MPI_Test as many programs have it.  The loads can stay with their ranks, or alternate: each
 * iteration they go on by one rank.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of libinvasive, if it is there: emulated cores may have speeds. */
double inv_core_speed(void) __attribute__((weak));

enum { MAX_LOADS = 256, UNIT_ROUNDS = 256 };

struct options {
    double loads[MAX_LOADS]; /* relative; rank r has loads[r % nloads] */
    int nloads;
    double work_ms; /* core time of an iteration, summed over all ranks */
    long regions;   /* parallel regions of an iteration */
    long iterations;
    double units_per_ms; /* 0: measure */
    bool polled;
    bool alternate; /* the loads go on by one rank each iteration */
    bool emulate;   /* sleep for the modelled time instead of computing */
    bool calibrate; /* only print units per millisecond */
};

enum { KEY_UNITS = 256, KEY_WAIT, KEY_CALIBRATE, KEY_ALTERNATE, KEY_EMULATE };

static const struct argp_option option_table[] = {
    {"loads", 'l', "A:B:...", 0, "Relative loads of the ranks (default 1:9)", 0},
    {"work-ms", 'w', "MS", 0, "Core time of an iteration, all ranks together (default 60)", 0},
    {"regions", 'r', "N", 0, "Parallel regions of an iteration (default 1)", 0},
    {"iterations", 'i', "N", 0, "Number of iterations (default 50)", 0},
    {"wait", KEY_WAIT, "blocking|polled", 0, "How to wait for the others (default blocking)", 0},
    {"alternate", KEY_ALTERNATE, 0, 0, "Each iteration the loads go on by one rank", 0},
    {"emulate", KEY_EMULATE, 0, 0, "Sleep for the modelled time instead of computing", 0},
    {"units-per-ms", KEY_UNITS, "N", 0, "Units of work that take a millisecond (default: measured)",
     0},
    {"calibrate", KEY_CALIBRATE, 0, 0, "Print the units that take a millisecond and exit", 0},
    {0},
};

static double parse_positive(const char *text, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || !isfinite(value))
        argp_error(state, "'%s' is not a positive number", text);
    return value;
}

static void parse_loads(char *text, struct options *o, struct argp_state *state)
{
    char *rest = text;
    o->nloads = 0;
    for (char *word; (word = strsep(&rest, ":")) != NULL;) {
        char *end;
        double value = strtod(word, &end);
        if (end == word || *end || !(value >= 0) || !isfinite(value) || o->nloads == MAX_LOADS)
            argp_error(state, "--loads: want at most %d numbers with ':' between them", MAX_LOADS);
        o->loads[o->nloads++] = value;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'l':
        parse_loads(arg, o, state);
        break;
    case 'w':
        o->work_ms = parse_positive(arg, state);
        break;
    case 'r':
        o->regions = (long)ceil(parse_positive(arg, state));
        break;
    case 'i':
        o->iterations = (long)ceil(parse_positive(arg, state));
        break;
    case KEY_UNITS:
        o->units_per_ms = parse_positive(arg, state);
        break;
    case KEY_ALTERNATE:
        o->alternate = true;
        break;
    case KEY_EMULATE:
        o->emulate = true;
        break;
    case KEY_CALIBRATE:
        o->calibrate = true;
        break;
    case KEY_WAIT:
        o->polled = strcmp(arg, "polled") == 0;
        if (!o->polled && strcmp(arg, "blocking") != 0)
            argp_error(state, "--wait is blocking or polled, not '%s'", arg);
        break;
    case ARGP_KEY_ARG:
        argp_usage(state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* One unit of work: every step needs the one before it, so that neither the compiler nor the
 * core can do more than one at a time. */
static uint64_t unit(uint64_t seed)
{
    uint64_t x = seed * 2 + 1;
    for (int i = 0; i < UNIT_ROUNDS; i++) {
        x ^= x >> 29;
        x *= UINT64_C(0xbf58476d1ce4e5b9);
    }
    return x;
}

/* A sum of integers: the same in any order and with any number of threads. */
static uint64_t compute(long first, long count)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = first; i < first + count; i++)
        sum += unit((uint64_t)i);
    return sum;
}

/* What a core of full speed takes so long for. */
static void sleep_ns(double ns)
{
    ns /= inv_core_speed ? inv_core_speed() : 1;
    struct timespec left = {.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)};
    while (nanosleep(&left, &left))
        ;
}

/* The numbers of the units instead of the units; each thread sleeps once, for all of its own. */
static uint64_t emulate(long first, long count, double ns_per_unit)
{
    uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        long mine = 0;
#pragma omp for schedule(static) nowait
        for (long i = first; i < first + count; i++) {
            sum += (uint64_t)i;
            mine++;
        }
        sleep_ns((double)mine * ns_per_unit);
    }
    return sum;
}

static uint64_t region(const struct options *o, long first, long count)
{
    return o->emulate ? emulate(first, count, 1e6 / o->units_per_ms) : compute(first, count);
}

/* Units per millisecond on one core: the fastest of some short trials, before any region. */
static double measure_units(void)
{
    const long trial = 1000;
    double best = 0;
    volatile uint64_t sink = 0;
    for (int k = 0; k < 20; k++) {
        double start = MPI_Wtime();
        for (long i = 0; i < trial; i++)
            sink += unit((uint64_t)i);
        best = fmax(best, (double)trial / ((MPI_Wtime() - start) * 1e3));
    }
    return best;
}

static uint64_t sum_over_ranks(uint64_t mine, bool polled)
{
    uint64_t total;
    if (!polled) {
        MPI_Allreduce(&mine, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        return total;
    }
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(&mine, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return total;
}

static long units_of_rank(const struct options *o, int rank, int size, long iteration)
{
    double all = 0;
    int turn = o->alternate ? (int)(iteration % o->nloads) : 0;
    for (int r = 0; r < size; r++)
        all += o->loads[(r + turn) % o->nloads];
    if (!(all > 0))
        return 0;
    return lround(o->work_ms * o->units_per_ms * o->loads[(rank + turn) % o->nloads] / all);
}

static uint64_t run(const struct options *o, int rank, int size)
{
    uint64_t checksum = 0;
    for (long it = 0; it < o->iterations; it++) {
        uint64_t sum = 0;
        long units = units_of_rank(o, rank, size, it);
        for (long r = 0; r < o->regions; r++) {
            long first = units * r / o->regions, next = units * (r + 1) / o->regions;
            sum += region(o, first, next - first);
        }
        checksum = checksum * 31 + sum_over_ranks(sum, o->polled);
    }
    return checksum;
}

int main(int argc, char **argv)
{
    struct options o = {
        .loads = {1, 9}, .nloads = 2, .work_ms = 60, .regions = 1, .iterations = 50};
    const struct argp argp = {
        .options = option_table, .parser = parse_option,
        .doc = "Constant load imbalance between MPI ranks, in static OpenMP loops."};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    argp_parse(&argp, argc, argv, 0, NULL, &o);

    if (rank == 0 && !(o.units_per_ms > 0))
        o.units_per_ms = measure_units();
    MPI_Bcast(&o.units_per_ms, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (o.calibrate) {
        if (rank == 0)
            printf("units_per_ms %.3f\n", o.units_per_ms);
        MPI_Finalize();
        return 0;
    }

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    uint64_t checksum = run(&o, rank, size);
    double seconds = MPI_Wtime() - start;
    if (rank == 0)
        printf("imbalance: %d ranks, %d threads, %ld iterations of %ld regions, wait %s\n"
               "seconds %.6f\nchecksum %016llx\n",
               size, omp_get_max_threads(), o.iterations, o.regions,
               o.polled ? "polled" : "blocking", seconds, (unsigned long long)checksum);
    MPI_Finalize();
    return 0;
}
