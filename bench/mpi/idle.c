/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * idle.c - what a rank costs that waits for seconds: for bench/mpi/waits.py.  Plain MPI.
 *
 *   idle SECONDS compute|sleep CALL...
 *
 * Rank 0 computes or sleeps for so long while all others wait for it in CALL: recv, barrier, fence,
 * waitall, probe, test, testall, iprobe; each prints "CALL_percent", the processor time of the rank
 * that used most, over the time that it waited.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wstringop-overflow" /* MPI_STATUSES_IGNORE */

enum { TAG = 3 };

static int rank, size, put;
static MPI_Win window;

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* What all ranks do together at the end of some rounds. */
static int meet(const char *call)
{
    if (strcmp(call, "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(call, "fence") == 0)
        MPI_Win_fence(0, window);
    else
        return 0;
    return 1;
}

/* Rank 0's side of a round: nothing for the others to hear, then one message to each. */
static void keep_waiting(double seconds, int compute, const char *call)
{
    double until = MPI_Wtime() + seconds;
    if (!compute)
        usleep((useconds_t)(seconds * 1e6));
    while (MPI_Wtime() < until)
        ;
    if (meet(call))
        return;
    for (int r = 1; r < size; r++)
        MPI_Send(&rank, 1, MPI_INT, r, TAG, MPI_COMM_WORLD);
}

static void await_one(const char *call)
{
    int value, flag = 0;
    MPI_Request r;
    if (meet(call))
        return;
    if (strcmp(call, "iprobe") == 0)
        while (!flag)
            MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (strcmp(call, "probe") == 0)
        MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(call, "iprobe") == 0 || strcmp(call, "probe") == 0 || strcmp(call, "recv") == 0) {
        MPI_Recv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r);
    if (strcmp(call, "waitall") == 0)
        MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    while (strcmp(call, "test") == 0 && !flag)
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    while (strcmp(call, "testall") == 0 && !flag)
        MPI_Testall(1, &r, &flag, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4) {
        fputs("usage: idle SECONDS compute|sleep CALL...\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int compute = strcmp(argv[2], "compute") == 0;
    MPI_Win_create(&put, sizeof put, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int a = 3; a < argc; a++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime(), cpu = cpu_seconds(), most = 0;
        if (rank == 0)
            keep_waiting(atof(argv[1]), compute, argv[a]);
        else
            await_one(argv[a]);
        double percent = rank == 0 ? 0 : 100 * (cpu_seconds() - cpu) / (MPI_Wtime() - start);
        MPI_Reduce(&percent, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s_percent %.3f\n", argv[a], most);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
