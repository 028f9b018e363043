/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fake_program.c - a program of fake_mpi.c's. */
int MPI_Init(int *argc, char ***argv);
int MPI_Barrier(long comm);
int MPI_Finalize(void);

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += MPI_Barrier(i);
    MPI_Finalize();
    return sum == 3 ? 0 : 1;
}
