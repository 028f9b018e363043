/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * begin.c - the thread level of a program that is linked with the library.
 *
 * Only with MPI_THREAD_MULTIPLE may requests be tested at any time.  With MPI_THREAD_SERIALIZED
 * there is no time at which a thread knows that no other one is in MPI, and the distribution's
 * OpenMP runtime does not test.  So MPI is asked for MPI_THREAD_MULTIPLE there, which the standard
 * allows it to give anyway.  Under `invade`, and below MPI_THREAD_SERIALIZED, the program's level
 * stays: its main thread tests.
 *
 * Open MPI's Fortran functions call PMPI_Init and PMPI_Init_thread, so they are replaced, too.
 */
#include "mpi-shim/triggers/list.h"

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

static int level_for(int required)
{
    return triggers_main_tests() && required < MPI_THREAD_SERIALIZED ? required
                                                                    : MPI_THREAD_MULTIPLE;
}

/* The shim's dispatcher knows the process's MPI after its first call only. */
static void call_shim(void)
{
    int flag;
    PMPI_Initialized(&flag);
}

PUBLIC int MPI_Init(int *argc, char ***argv)
{
    int provided;
    call_shim();
    if (level_for(MPI_THREAD_SINGLE) == MPI_THREAD_SINGLE)
        return PMPI_Init(argc, argv);
    return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    call_shim();
    return PMPI_Init_thread(argc, argv, level_for(required), provided);
}

/* --- Fortran: mpif.h and `use mpi`, then `use mpi_f08`, where *result may be absent */

PUBLIC void mpi_init_(MPI_Fint *result);
PUBLIC void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *result);
PUBLIC void mpi_init_f08_(MPI_Fint *result);
PUBLIC void mpi_init_thread_f08_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *result);

void mpi_init_f08_(MPI_Fint *result)
{
    int code = MPI_Init(NULL, NULL);
    if (result)
        *result = code;
}

void mpi_init_thread_f08_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *result)
{
    int level = 0, code = MPI_Init_thread(NULL, NULL, *required, &level);
    *provided = level;
    if (result)
        *result = code;
}

void mpi_init_(MPI_Fint *result)
{
    mpi_init_f08_(result);
}

void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *result)
{
    mpi_init_thread_f08_(required, provided, result);
}
