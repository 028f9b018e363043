/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* handler.h - which error handlers the program has set, and MPI_ERRORS_RETURN for a while. */
#ifndef SHIM_HANDLER_H
#define SHIM_HANDLER_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

extern struct shim_handlers {
    /* How often the program has set an error handler; 0: all are as MPI began.  Written by
     * shim_handler_count_set only; read by each wait. */
    _Atomic unsigned set;
    /* The rest is written by the functions of handler.c, under the lock. */
    pthread_mutex_t lock __attribute__((aligned(64)));
    bool world_set, self_set; /* by the program */
    int returning; /* waits that need MPI_ERRORS_RETURN now; several threads may wait */
    /* While returning > 0: the program's handlers, and the communicators that have
     * MPI_ERRORS_RETURN. */
    MPI_Errhandler saved[2];
    MPI_Comm saved_of[2];
    int count;
} shim_handlers;
/* The program has set a handler, or has made a communicator with one. */
void shim_handler_count_set(void);
/* With MPICH: are the handlers of MPI_COMM_WORLD and MPI_COMM_SELF those that MPI began with?  With
 * Open MPI always false: setting a handler and setting it back has no effect there. */
bool shim_handlers_are_defaults(void);
/* Does MPI_Test report an error to another handler than that of `comm`? */
bool shim_errors_go_elsewhere(MPI_Comm comm);
/* In between, errors without a communicator, and those of the shim's MPI_Test, are returned: no
 * error handler is called.  Calls may be nested and come from several threads. */
void shim_errors_return_begin(void);
void shim_errors_return_end(void);

#pragma GCC visibility pop
#endif
