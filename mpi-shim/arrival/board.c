/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * board.c - the arrival board of a communicator: a line for each rank, in shared memory.
 *
 * The lines follow each other, so one number says where they are.  Rank 0 reserves the lines and
 * broadcasts the number, at the first collective of a communicator whose ranks are all in this
 * domain. Each rank finds out locally whether they are, with the same result (comm.c).
 */
#include "mpi-shim/arrival/board.h"
#include "libinvasive/table/arrival_board.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/watch.h"
#include "libinvasive/process.h"

static bool check_board_number(struct shim_wait *w)
{
    int flag = 0;
    w->result = shim_pmpi.Test(w->arg, &flag, MPI_STATUS_IGNORE);
    return flag || w->result != MPI_SUCCESS;
}

/* No non-blocking collective where the blocking function can be watched (agreement.c). */
static int receive_board_number(struct shim_comm *c, int *first)
{
    MPI_Request request;
    if (shim_hooked())
        return SHIM_WATCH(c, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
                          shim_pmpi.Bcast(first, 1, MPI_INT, 0, c->handle));
    int result = shim_pmpi.Ibcast(first, 1, MPI_INT, 0, c->handle, &request);
    if (result != MPI_SUCCESS)
        return result;
    struct shim_wait wait = {.done = check_board_number, .arg = &request};
    shim_wait(&wait, (const void *)receive_board_number);
    shim_ring_comm(c); /* this rank has passed the number on to ranks that may sleep */
    return wait.result;
}

/* Lines: the header and one per rank.  Rank 0's number goes to all; -1 means no room. */
static void make_board(struct shim_comm *c)
{
    unsigned lines = (unsigned)c->size + 1;
    int first = c->rank == 0 ? inv_arrival_board_alloc(inv_process.table, lines) : -1;
    c->board_tried = true;
    if (receive_board_number(c, &first) != MPI_SUCCESS || first < 0 ||
        first > INV_ARRIVAL_LINES - (int)lines)
        return;
    inv_assert(c->board_first < 0 && c->all_here && !c->inter); /* a communicator has one board */
    c->board_first = first;
    c->header = inv_arrival_line_at(inv_process.table, (unsigned)first);
    c->line = c->header + 1;
    atomic_store_explicit(&c->line[c->rank].slot, inv_own_name(), memory_order_relaxed);
}

void shim_comm_board(struct shim_comm *c)
{
    if (!c->board_tried && c->all_here && c->size > 1)
        make_board(c);
}
