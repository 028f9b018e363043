/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * agreement.h - agreement of the ranks of a communicator in set-up.  All ranks call each function
 * of an agreement.  False: MPI has refused a message.
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
    int *world_rank; /* of each rank: that in MPI_COMM_WORLD; NULL in a process that is not
                        managed */
    int number;      /* shim_text_tag of the string tag that made the communicator; 0 in MPI_Init */
};

enum { SHIM_AGREEMENT_MOST = 4 };
/* Allreduce: each of `count` numbers, at most SHIM_AGREEMENT_MOST, becomes the minimum of all
 * ranks. */
bool shim_agreement_min(const struct shim_agreement *a, int *minima, int count);
/* Allgather: `bytes` from each rank, in order of rank. */
bool shim_agreement_allgather(const struct shim_agreement *a, const void *mine, void *all,
                              size_t bytes);
/* Waits for a request; `result` is the code of the call that started it.  Returns MPI's code.  Used
 * in place of MPI's own wait, which spins through time slices with more ranks than cores. */
int shim_complete(int result, MPI_Request *request);
/* True when all requests have completed within this time; false also when one failed. */
bool shim_complete_all(int count, MPI_Request *requests, uint64_t within_ns);

#pragma GCC visibility pop
#endif
