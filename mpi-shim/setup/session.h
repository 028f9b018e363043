/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* session.h - sessions, beside which MPI_COMM_WORLD opens and closes (session.c). */
#ifndef SHIM_SESSION_H
#define SHIM_SESSION_H

#include "mpi-shim/ranks/managed_group.h"

#pragma GCC visibility push(hidden)

/* MPI_Init has ended. */
void shim_world_opens(void);
/* MPI_Finalize begins.  Returns how many sessions the process has open. */
int shim_world_closes(void);
/* MPI_COMM_WORLD ends, and sessions of this process go on.  `all` is the managed group of all
 * ranks. all_go_on: each rank has such sessions. */
void shim_sessions_keep(struct shim_managed_group *all, bool all_go_on);

#pragma GCC visibility pop
#endif
