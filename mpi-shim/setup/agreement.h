/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * agreement.h - agreement of the ranks of a communicator in set-up.  All of them call each
 * function.  False: MPI has refused a message.
 */
#ifndef SHIM_AGREEMENT_H
#define SHIM_AGREEMENT_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The ranks of a communicator that agree whether they are managed. */
struct shim_agreement {
    MPI_Comm comm; /* no intercommunicator */
    int rank, size;
    int *world_rank; /* of each; NULL in a process that is not managed */
    int number;      /* of the text that the communicator was made with; 0 in MPI_Init */
};

enum { SHIM_AGREEMENT_MOST = 4 };
/* Allreduce: each of `count` numbers, at most SHIM_AGREEMENT_MOST, becomes the minimum of all
 * ranks. */
bool shim_agreement_min(const struct shim_agreement *a, int *minima, int count);
/* Allgather: `bytes` from each rank, in order of rank. */
bool shim_agreement_allgather(const struct shim_agreement *a, const void *mine, void *all,
                              size_t bytes);
/* Wait for what has been started with this result.  Not MPI's own wait: with more ranks than cores
 * that one spins through time slices. */
int shim_complete(int result, MPI_Request *request);
/* True when all requests completed within so many nanoseconds; false also when one failed. */
bool shim_complete_all(int count, MPI_Request *requests, uint64_t within_ns);

#pragma GCC visibility pop
#endif
