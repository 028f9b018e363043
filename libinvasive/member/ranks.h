/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ranks.h - what the environment of an MPI launcher says of this process's job.
 */
#ifndef INV_RANKS_H
#define INV_RANKS_H

#include "libinvasive/table/protocol.h"

/* Number of ranks of this process's job on its node; -1: the MPI launcher's environment does not
 * say it.  Thread safe. */
int inv_local_size(void);
/* The number of this rank among these, from 0; or -1.  Thread safe. */
int inv_local_rank(void);

/* The same, as good as the environment tells: if it counts only all ranks of the job, their number;
 * 2 if it only says that this process is a rank; 1 if it says nothing.  Thread safe. */
unsigned inv_ranks_here(void);

/* Fills in the request's MPI fields that the caller has left empty. */
void inv_ranks_fill(struct inv_request *request);

#endif
