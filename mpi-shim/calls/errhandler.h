/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * errhandler.h - the error handler of a blocking function that the shim has split.  handler.c says
 * why.
 *
 * shim_errhandler_suspend() and shim_errhandler_resume() enclose the wait of such a function of the
 * program.  Suspend returns false where the library's MPI_Test reports errors as the blocking
 * function would; resume then does nothing.  Resume calls the communicator's error handler if
 * `result` is an error, and returns `result`.
 */
#ifndef SHIM_ERRHANDLER_H
#define SHIM_ERRHANDLER_H

#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/handler.h"

#pragma GCC visibility push(hidden)

/* The slow path of shim_errhandler_suspend: the program has set error handlers, as often as `set`
 * says. */
bool shim_errhandler_suspend_now(struct shim_comm *c, unsigned set);
/* The slow path of shim_errhandler_resume: the handler has been suspended. */
int shim_errhandler_resume_now(MPI_Comm comm, int result);
static inline bool shim_errhandler_suspend(struct shim_comm *c)
{
    unsigned set = atomic_load_explicit(&shim_handlers.set, memory_order_relaxed);
    return __builtin_expect(set != 0, 0) && shim_errhandler_suspend_now(c, set);
}
static inline int shim_errhandler_resume(bool suspended, MPI_Comm comm, int result)
{
    return __builtin_expect(suspended, 0) ? shim_errhandler_resume_now(comm, result) : result;
}

#pragma GCC visibility pop
#endif
