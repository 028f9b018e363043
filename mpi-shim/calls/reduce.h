/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* reduce.h - the operation for a reduction (reduce.c). */
#ifndef SHIM_REDUCE_H
#define SHIM_REDUCE_H

#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

/* The operation with which the ranks of c, which is managed, call MPI_Ireduce for `op`. */
MPI_Op shim_reduce_op(const struct shim_comm *c, MPI_Count count, MPI_Datatype datatype, MPI_Op op);
/* Frees all operations. */
void shim_reduce_end(void);

#pragma GCC visibility pop
#endif
