/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fake_mpi.c - an MPI library for one process, with its own binary interface.  Its functions
 * call each other as a program would, by names that can be interposed: MPI_X calls PMPI_X,
 * and to say its version it needs other MPI functions.
 */
#include <stdio.h>
#include <string.h>

int PMPI_Init(int *argc, char ***argv);
int MPI_Init(int *argc, char ***argv);
int PMPI_Barrier(long comm);
int MPI_Barrier(long comm);
int PMPI_Finalize(void);
int MPI_Finalize(void);
int PMPI_Get_library_version(char *version, int *length);
int MPI_Get_library_version(char *version, int *length);

static int barriers;

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }

int PMPI_Barrier(long comm)
{
    barriers++;
    return (int)comm;
}
int MPI_Barrier(long comm) { return PMPI_Barrier(comm); }

int PMPI_Finalize(void)
{
    printf("%d barriers\n", barriers);
    return 0;
}
int MPI_Finalize(void) { return PMPI_Finalize(); }

int PMPI_Get_library_version(char *version, int *length)
{
    strcpy(version, "Nobody's MPI");
    *length = (int)strlen(version) + MPI_Barrier(0);
    return 0;
}
int MPI_Get_library_version(char *version, int *length)
{
    return PMPI_Get_library_version(version, length);
}
