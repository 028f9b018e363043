/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bound.c - where may ranks compute that their launcher has bound?  Two ranks: the first one waits in
 * MPI while the second one computes in a parallel region of two threads.  Each prints how many CPUs it
 * sees before and after MPI_Init; the second also on how many its threads have computed at once.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

static int cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

/* Were two implicit tasks on two CPUs at some time? */
static int apart(void)
{
    static volatile int where[2] = {-1, -1};
    static volatile int seen;
    const double end = omp_get_wtime() + 5;
#pragma omp parallel num_threads(2)
    while (!seen && omp_get_wtime() < end) {
        int me = omp_get_thread_num(), other = where[1 - me];
        where[me] = sched_getcpu();
        if (other >= 0 && other != where[me])
            seen = 1;
    }
    return 1 + seen;
}

int main(int argc, char **argv)
{
    int rank, before = cpus(), token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("rank 0: %d %d\n", before, cpus());
    } else {
        int used = apart();
        printf("rank 1: %d %d, %d at once\n", before, cpus(), used);
        MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
