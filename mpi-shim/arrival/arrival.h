/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * arrival.h - arrival barriers (arrival.c).
 */
#ifndef SHIM_ARRIVAL_H
#define SHIM_ARRIVAL_H

#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

struct shim_arrival {
    struct shim_comm *comm; /* NULL: nothing to wait for */
    const void *call_site;
    uint64_t start; /* ticks */
    int next;       /* all ranks below this one have arrived */
    unsigned checks;
    bool waited;  /* in the wait engine, which has recorded the wait */
    bool counted; /* among the threads that are in arrival barriers */
};
/* Enters an arrival barrier of all ranks of c, which is managed.  True: all have arrived, or will
 * so soon that the blocking function is the best way to wait for them; call it, then
 * shim_arrival_end.  False: use the non-blocking form and shim_arrival_wait_request.  All ranks get
 * the same answer. */
bool shim_arrival_begin(struct shim_arrival *a, struct shim_comm *c, const void *call_site);
/* Waits for the request, and ends the arrival barrier.  Returns MPI's code. */
int shim_arrival_wait_request(struct shim_arrival *a, MPI_Request *request);
/* Ends the barrier after the blocking function, and wakes ranks that still sleep in it. */
void shim_arrival_end(struct shim_arrival *a);

/* --- before a function that cannot be split.  Each of these returns when all ranks have arrived;
 * the wait in MPI that follows is short. */

/* A barrier of the ranks of c, which is managed; ends with shim_arrival_end(). */
void shim_arrival_barrier(struct shim_arrival *a, struct shim_comm *c, const void *call_site);
/* The same, without an end.  Returns a number on which all ranks of c agree, for shim_remember_win
 * and shim_remember_file.  Few windows or files, if any, have the same number at the same time. */
int shim_arrival_barrier_tag(struct shim_comm *c, const void *call_site);

#pragma GCC visibility pop
#endif
