/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* calls.h - an exchange: a send and a receive of one call (calls.c). */
#ifndef SHIM_CALLS_H
#define SHIM_CALLS_H

#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

/* A receive and a send that have been posted together. */
struct shim_exchange {
    MPI_Request receive, send; /* MPI_REQUEST_NULL: has not begun */
    int source, dest;
    int result; /* MPI's code of the call that was made last */
    const void *call_site;
};
/* Has the call that returned `result` begun a message to or from `peer`?  An error handler may turn
 * an error into a success without a request, and a library may have no request for
 * MPI_PROC_NULL. */
SHIM_INLINE bool shim_begun(MPI_Request request, int result, int peer)
{
    return request != MPI_REQUEST_NULL || (result == MPI_SUCCESS && peer == MPI_PROC_NULL);
}
/* Rings the other ranks and waits for both requests.  *status is the receive's.  If the send has
 * not begun, cancels the receive.  Returns MPI's code. */
int shim_exchange_wait(struct shim_exchange *e, struct shim_comm *c, MPI_Status *status);

#pragma GCC visibility pop
#endif
