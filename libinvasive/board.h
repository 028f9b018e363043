/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * board.h - arrival boards: a line of shared memory per member of a group of processes
 * of one domain, on which each says how far it has come.  The MPI shim keeps one per
 * communicator whose ranks are all here, to know without asking MPI whether all ranks
 * have arrived in a collective.
 */
#ifndef INV_BOARD_H
#define INV_BOARD_H

#include "table.h"

/* Reserve `lines` neighbouring lines, zeroed.  Returns the first one's number, or -1 when
 * there is no room.  Any process of the domain; lock-free. */
int inv_board_alloc(struct inv_table *t, unsigned lines);
void inv_board_free(struct inv_table *t, int first, unsigned lines);

#endif
