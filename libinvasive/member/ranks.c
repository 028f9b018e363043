/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* ranks.c - see ranks.h. */
#include "libinvasive/member/ranks.h"
#include "libinvasive/base/environment.h"

int inv_local_size(void)
{
    int size = inv_getenv_count("MPI_LOCALNRANKS");
    return size < 0 ? inv_getenv_count("OMPI_COMM_WORLD_LOCAL_SIZE") : size;
}

int inv_local_rank(void)
{
    int rank = inv_getenv_count("MPI_LOCALRANKID");
    return rank < 0 ? inv_getenv_count("OMPI_COMM_WORLD_LOCAL_RANK") : rank;
}

unsigned inv_ranks_here(void)
{
    int here = inv_local_size();
    if (here < 0 && (here = inv_getenv_count("PMI_SIZE")) < 0)
        here = inv_getenv("SLURM_PROCID") ? inv_getenv_count("SLURM_NTASKS") : -1;
    if (here < 0)
        return inv_getenv("PMIX_RANK") ? 2 : 1;
    return here > 0 ? (unsigned)here : 1;
}

void inv_ranks_fill(struct inv_request *request)
{
    if (request->rank < 0 && (request->rank = inv_getenv_count("PMI_RANK")) < 0)
        request->rank = inv_getenv_count("OMPI_COMM_WORLD_RANK");
    if (request->size < 0 && (request->size = inv_getenv_count("PMI_SIZE")) < 0)
        request->size = inv_getenv_count("OMPI_COMM_WORLD_SIZE");
    if (request->local_size < 0)
        request->local_size = inv_local_size();
    request->local_rank = inv_local_rank();
}
