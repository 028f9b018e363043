/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* world.c - see world.h. */
#include "mpi-shim/ranks/world.h"

#include <stdlib.h>

struct shim_world shim_world;

int *shim_world_ranks(MPI_Group group, int size)
{
    int *ranks = malloc((size_t)size * 2 * sizeof *ranks);
    if (!ranks)
        return NULL;
    for (int r = 0; r < size; r++)
        ranks[size + r] = r;
    shim_pmpi.Group_translate_ranks(group, size, ranks + size, shim_world.group, ranks);
    return ranks;
}
