/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * files.c - collectives on files: an arrival barrier comes first (opened_group.c).  MPI's own wait
 * is then only for the access itself.
 */
#include "mpi-shim/arrival/opened_group.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/watch.h"

int shim_File_close(MPI_File *file)
{
    struct shim_opened_group *g = file ? shim_opened_group_of_file(*file) : NULL;
    if (!shim_hooked())
        shim_opened_group_barrier(g, SHIM_SITE);
    shim_opened_group_detach(g);
    int result = SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, shim_pmpi.File_close(file));
    shim_opened_group_end(g, result == MPI_SUCCESS);
    return result;
}
