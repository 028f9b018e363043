/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* onesided.h - windows (onesided.c). */
#ifndef SHIM_ONESIDED_H
#define SHIM_ONESIDED_H

#include "mpi-shim/gen/shim-pmpi.h"

#pragma GCC visibility push(hidden)

enum { SHIM_RANKS_ALL = -1 };
/* Wakes the target `rank` of the window, or SHIM_RANKS_ALL, since the target has to make progress.
 * Returns its domain rank. */
int shim_wake_target(MPI_Win win, int rank);
/* This process has begun (change 1) or ended (-1) a lock epoch of the window. */
void shim_window_locked(MPI_Win win, int change);

#pragma GCC visibility pop
#endif
