/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * partitioned.h - partitioned requests: the blocking function follows when all of them are complete
 * (partitioned.c).
 */
#ifndef SHIM_PARTITIONED_H
#define SHIM_PARTITIONED_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Is one of the `count` requests a partitioned one? */
bool shim_any_partitioned(int count, const MPI_Request *requests);
/* Waits until the partitioned ones of the `count` requests are complete.  They stay requests: the
 * caller completes them by MPI's blocking function. */
void shim_await_partitioned(int count, MPI_Request *requests, const void *call_site);

#pragma GCC visibility pop
#endif
