/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plugin.c - a shared library with all of a program's MPI in it.  Rank 0 is late; returns 1 with 2
 * ranks. */
#include <mpi.h>

int plugin(void);
int plugin(void)
{
    int rank, sum = 0;
    MPI_Init(0, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double until = MPI_Wtime() + (rank == 0 ? 0.4 : 0);
    while (MPI_Wtime() < until)
        ;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum;
}
