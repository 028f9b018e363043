/* SPDX-License-Identifier: GPL-3.0-or-later */
/* abi_values.c - what an mpi.h of the standard binary interface says; -DNAMES: P(NAME) of each. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

#define P(name) printf(#name " %lld\n", (long long)(name));

int main(void)
{
    NAMES
    printf("status %zu %zu %zu %zu\n", sizeof(MPI_Status), offsetof(MPI_Status, MPI_SOURCE),
           offsetof(MPI_Status, MPI_TAG), offsetof(MPI_Status, MPI_ERROR));
    printf("numbers %zu %zu %zu\n", sizeof(MPI_Aint), sizeof(MPI_Offset), sizeof(MPI_Count));
    printf("handles %zu %zu %zu\n", sizeof(MPI_Comm), sizeof(MPI_Request), sizeof(MPI_Datatype));
    return 0;
}
