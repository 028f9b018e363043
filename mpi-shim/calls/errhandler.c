/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* errhandler.c - see errhandler.h. */
#include "mpi-shim/calls/errhandler.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/handler.h"

bool shim_errhandler_suspend_now(struct shim_comm *c, unsigned set)
{
    if (c->handlers_seen != set) {
        c->handler_differs = !shim_is_open_mpi() && shim_errors_go_elsewhere(c->handle);
        c->handlers_seen = set;
    }
    if (c->handler_differs)
        shim_errors_return_begin();
    return c->handler_differs;
}

int shim_errhandler_resume_now(MPI_Comm comm, int result)
{
    shim_errors_return_end();
    if (result != MPI_SUCCESS)
        shim_pmpi.Comm_call_errhandler(comm, result);
    return result;
}
