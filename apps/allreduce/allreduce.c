/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * allreduce.c - how long one MPI_Allreduce of one double takes: nothing but the wait for the
 * other ranks.  With more ranks than cores it shows what a waiting rank does to the one that it
 * waits for; with a core for each rank, what interposition costs.  Plain MPI.
 */
#include <argp.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    double seconds; /* about how long to go on */
    long calls;     /* or exactly so many calls */
};

static const struct argp_option option_table[] = {
    {"seconds", 's', "S", 0, "Go on for about so long (default 1)", 0},
    {"calls", 'c', "N", 0, "Make exactly so many calls instead", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    char *end = NULL;
    switch (key) {
    case 's':
        o->seconds = strtod(arg, &end);
        break;
    case 'c':
        o->calls = strtol(arg, &end, 10);
        break;
    case ARGP_KEY_ARG:
        argp_usage(state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (end == arg || *end || !(o->seconds > 0) || o->calls < 0)
        argp_error(state, "'%s' is not a positive number", arg);
    return 0;
}

/* Each call sums the number of calls made so far; a wrong sum is an error of the library. */
static double one_batch(long calls, int size, long *wrong)
{
    double start = MPI_Wtime();
    for (long i = 0; i < calls; i++) {
        double mine = (double)i, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        *wrong += sum != (double)i * size;
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    struct options o = {.seconds = 1};
    const struct argp argp = {.options = option_table, .parser = parse_option,
                              .doc = "Time of one MPI_Allreduce of one double."};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    argp_parse(&argp, argc, argv, 0, NULL, &o);

    /* Batches grow until they take a tenth of the time; rank 0 decides for all. */
    long wrong = 0, calls = 0, batch = o.calls ? o.calls : 4;
    double spent = 0;
    for (int go_on = 1; go_on;) {
        double t = one_batch(batch, size, &wrong);
        spent += t;
        calls += batch;
        if (t < o.seconds / 10)
            batch *= 2;
        go_on = !o.calls && spent < o.seconds;
        long plan[2] = {go_on, batch};
        MPI_Bcast(plan, 2, MPI_LONG, 0, MPI_COMM_WORLD);
        go_on = (int)plan[0];
        batch = plan[1];
    }
    if (rank == 0)
        printf("allreduce: %d ranks, %ld calls\nus_per_call %.4f\nwrong %ld\n", size, calls,
               spent / (double)calls * 1e6, wrong);
    MPI_Finalize();
    return wrong != 0;
}
