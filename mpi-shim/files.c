/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * files.c - collectives on files: their ranks come together first (party.c), so that what is left
 * of MPI's own wait is the access itself.
 */
#include "shim.h"

int shim_File_close(MPI_File *file)
{
    struct shim_party *p = file ? shim_party_of_file(*file) : NULL;
    if (!shim_hooked)
        shim_assemble_party(p, SHIM_SITE);
    shim_party_take(p);
    int result = SHIM_WATCH_OR_CALL(SHIM_MEMBER_NONE, shim_pmpi.File_close(file));
    shim_party_end(p, result == MPI_SUCCESS);
    return result;
}
