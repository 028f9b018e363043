/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* board.h - arrival boards (board.c). */
#ifndef SHIM_BOARD_H
#define SHIM_BOARD_H

#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

/* Called by all ranks of c at the begin of a collective, and only there: the first call makes the
 * arrival board, for which the ranks exchange messages. */
void shim_comm_board(struct shim_comm *c);

#pragma GCC visibility pop
#endif
