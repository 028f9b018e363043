/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * arrival_board.h - arrival boards: a line of shared memory for each member of a group of processes
 * of one domain, on which each shows how far it has come.  The MPI shim keeps a board for each
 * communicator whose ranks are all in the domain.  A rank sees there, without a message, whether
 * all ranks have arrived in a collective.
 */
#ifndef INV_ARRIVAL_BOARD_H
#define INV_ARRIVAL_BOARD_H

#include "libinvasive/table/table.h"

/* Reserves `lines` neighbouring lines, zeroed.  Returns the number of the first, or -1 when
 * there is no room.  Any process of the domain; lock-free. */
int inv_arrival_board_alloc(struct inv_table *t, unsigned lines);
/* Gives the lines back, which no process uses any more. */
void inv_arrival_board_free(struct inv_table *t, int first, unsigned lines);

#endif
