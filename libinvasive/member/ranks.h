/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ranks.h - what the environment of an MPI launcher says of this process's job.
 */
#ifndef INV_RANKS_H
#define INV_RANKS_H

#include "libinvasive/table/protocol.h"

/* Ranks of this process's job on its node, where its MPI launcher's environment counts those; else
 * -1.  Thread safe. */
int inv_local_size(void);
/* The number of this rank among those, or -1. */
int inv_local_rank(void);

/* Ranks of this process's job on its node, as its MPI launcher's environment says; 1: it is alone,
 * or nothing is known; 2 where the launcher only says that there are ranks.  Thread safe. */
unsigned inv_ranks_here(void);

/* Fills in the request's MPI fields that the caller has left empty. */
void inv_ranks_fill(struct inv_request *request);

#endif
