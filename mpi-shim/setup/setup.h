/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* setup.h - joining the domain, agreed by all ranks, and leaving it (setup.c). */
#ifndef SHIM_SETUP_H
#define SHIM_SETUP_H

#include "mpi-shim/setup/agreement.h"

#pragma GCC visibility push(hidden)

/* Makes a communicator of the agreement's ranks for the shim's messages; returns MPI's code. */
typedef int shim_make_own(const struct shim_agreement *a, MPI_Comm *own);

/* The process joins its domain.  `world` has all ranks; shim_tear_down frees it. */
void shim_join(MPI_Group world);
/* Called by all ranks of the communicator, which agree whether they are managed.  If they are, they
 * become a managed group.  number: as in struct shim_agreement. */
void shim_set_up(MPI_Comm comm, int number, shim_make_own *make_own);
/* Ends management.  synchronised: all ranks have just passed a barrier, to end it together. */
void shim_tear_down(bool synchronised);
/* From now on several threads may call MPI at once. */
void shim_threads_call(void);

#pragma GCC visibility pop
#endif
