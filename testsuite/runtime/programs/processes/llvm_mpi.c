/* SPDX-License-Identifier: GPL-3.0-or-later */
/* llvm_mpi.c - an MPI program whose OpenMP runtime, LLVM's, asks the kernel how many threads it may
 * have: says how many each rank has at first, and after waits.
 * @helper for test_coexistence.py
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0, team = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* In turn, so that each but one has been asleep when its runtime begins. */
    for (int turn = 0; turn < size; turn++) {
        double until = MPI_Wtime() + 0.1;
        while (turn == rank && MPI_Wtime() < until)
            ;
        MPI_Bcast(&token, 1, MPI_INT, turn, MPI_COMM_WORLD);
    }
    int threads = omp_get_max_threads(), procs = omp_get_num_procs();
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    printf("rank %d: %d threads, %d processors, a team of %d\n", rank, threads, procs, team);
    MPI_Finalize();
    return 0;
}
