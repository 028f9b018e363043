/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * check.h - how wrappers wait (check.c).
 *
 * A check calls a non-blocking function once.  It is the done() of a struct shim_wait, whose arg
 * has its arguments.  The functions return MPI's code.
 */
#ifndef SHIM_CHECK_H
#define SHIM_CHECK_H

#include "mpi-shim/wait/wait.h"

#pragma GCC visibility push(hidden)

/* Waits until done(); runs tasks meanwhile if the user wants that (tasks.c).  Must be called by the
 * thread that would have blocked. */
void shim_wait(struct shim_wait *w, const void *call_site);

/* True: the operation that the function tests is complete, or has failed.  MPI's code is in
 * w->result. */
typedef bool shim_check(struct shim_wait *w);
/* One check, and a wait until it is true. */
int shim_check_and_wait(shim_check *check, void *args, const void *call_site);
/* One check, and a short wait if it is one of a streak of failed checks. */
int shim_check_once(shim_check *check, void *args, const void *call_site);

/* Waits for a request.  comm and at_arrival: as in struct shim_wait. */
int shim_wait_request(MPI_Request *request, MPI_Status *status, struct shim_comm *comm,
                      bool at_arrival, const void *call_site);
/* The same, and rings `domain_rank`, the other end of the request. */
int shim_wait_one(MPI_Request *request, MPI_Status *status, int domain_rank, const void *call_site);
/* The same for the request of a collective of c. */
int shim_wait_collective(MPI_Request *request, struct shim_comm *c, const void *call_site);

#pragma GCC visibility pop
#endif
