/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * killed.c - a job whose last rank kills itself after a second; for bench/run killed.
 *
 *   killed FILE waiting   the others wait for it in MPI_Barrier
 *   killed FILE working   all compute, and meet every millisecond
 *
 * The moment, of CLOCK_MONOTONIC in seconds, is in FILE.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(double until)
{
    while (now() < until) {
        for (double end = now() + 0.001; now() < end;)
            ;
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void die(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fprintf(f, "%.9f\n", now());
    fclose(f);
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    int rank, size;
    double end;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 1);
    end = now() + 1;
    MPI_Bcast(&end, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!strcmp(argv[2], "working"))
        work(end);
    else if (rank == size - 1)
        sleep(1);
    if (rank == size - 1)
        die(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
