/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * artificial.c - the load-imbalance benchmark of Schreiber et al., "Invasive Compute Balancing
 * for Applications with Shared and Hybrid Parallelization", section 6.2: in step t of T, rank 0
 * takes (T - t)^2 square roots and rank 1 takes t^2, and a barrier ends the step, as the
 * communication of a simulation would.  Ranks beyond the second alternate.  Plain MPI+OpenMP.
 *
 * With two ranks and two cores that cannot move, the time is the sum over t of max(T - t, t)^2,
 * which is 7/12 T^3; with cores that follow the work it is half the total, 1/3 T^3.  So the limit
 * of what moving cores can gain is 4/7 = 0.571 of the stock time.
 */
#include <argp.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct options {
    long steps;             /* T */
    double scale;           /* roots per unit of L^2 */
    bool emulate;           /* sleep for the modelled time instead of computing */
    double emulate_root_ns; /* modelled time of one square root */
};

static const struct argp_option option_table[] = {
    {"steps", 'T', "T", 0, "Number of steps (default 1280)", 0},
    {"scale", 's', "X", 0, "Square roots for each unit of L^2 (default 1)", 0},
    {"emulate", 'e', 0, 0, "Sleep for the modelled time instead of computing", 0},
    {"emulate-root-ns", 'r', "NS", 0, "Modelled time of a square root (default 4)", 0},
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'T':
        o->steps = (long)parse_positive(arg, state);
        break;
    case 's':
        o->scale = parse_positive(arg, state);
        break;
    case 'e':
        o->emulate = true;
        break;
    case 'r':
        o->emulate_root_ns = parse_positive(arg, state);
        break;
    case ARGP_KEY_ARG:
        argp_usage(state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The checksum is a sum of integers, so that it depends neither on the order in which threads
 * finish nor on how many there are. */
static uint64_t take_roots(long count)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < count; i++)
        sum += (uint64_t)(int64_t)(sqrt((double)(i + 1)) * 1024.0);
    return sum;
}

static void sleep_ns(double ns)
{
    struct timespec ts = {(time_t)(ns / 1e9), (long)(ns - 1e9 * floor(ns / 1e9))};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* The same shares as take_roots, slept.  One loop iteration for each thread number. */
static uint64_t sleep_roots(long count, double root_ns)
{
    int shares = omp_get_max_threads();
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < shares; i++) {
        long mine = count / shares + (i < count % shares);
        if (mine)
            sleep_ns((double)mine * root_ns);
        sum += (uint64_t)mine;
    }
    return sum;
}

static long load(int rank, long step, long steps) { return rank % 2 == 0 ? steps - step : step; }

static uint64_t run(const struct options *o, int rank)
{
    uint64_t sum = 0;
    for (long t = 0; t < o->steps; t++) {
        double l = (double)load(rank, t, o->steps);
        long count = (long)(l * l * o->scale);
        sum += o->emulate ? sleep_roots(count, o->emulate_root_ns) : take_roots(count);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct options o = {.steps = 1280, .scale = 1.0, .emulate_root_ns = 4.0};
    const struct argp argp = {.options = option_table, .parser = parse_option,
                              .doc = "Artificial load imbalance: T steps, rank 0 takes (T-t)^2 "
                                     "square roots in step t and rank 1 takes t^2."};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    argp_parse(&argp, argc, argv, 0, NULL, &o);

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    uint64_t sum = run(&o, rank), total = 0;
    double seconds = MPI_Wtime() - start;
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("artificial: %d ranks, %d threads, T = %ld%s\nseconds %.6f\nchecksum %016llx\n",
               size, omp_get_max_threads(), o.steps, o.emulate ? ", emulated" : "", seconds,
               (unsigned long long)total);
    MPI_Finalize();
    return 0;
}
