/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * fast_path.h - the fast path of a guard.
 *
 * The guards of the most frequent functions (generate.py) have a fast path: only MPI's blocking
 * function is called.  It is taken if the thread's latest communicator is used again, the library
 * calls the shim while it polls, and there is no report.  All other calls take the slow path.
 * Arguments that MPI will refuse need no test, since the blocking function gets them.
 */
#ifndef SHIM_FAST_PATH_H
#define SHIM_FAST_PATH_H

#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/wait/watch.h"

#pragma GCC visibility push(hidden)

/* Does nothing but the arguments of the call prevent the fast path? */
SHIM_INLINE bool shim_fast_path(MPI_Comm comm)
{
    /* acquire: as in shim_comm */
    unsigned drops = atomic_load_explicit(&shim_comms.drops, memory_order_acquire);
    return shim_thread.comm_handle == comm && shim_thread.fast_path_drops == drops &&
           !shim_watch.site && !inv_triggers_pending();
}
SHIM_INLINE bool shim_fast_path_peer(const struct shim_comm *c, int peer)
{
    return (unsigned)peer < (unsigned)c->peers;
}
/* As shim_arrival_begin, for a communicator that has its board. */
SHIM_INLINE void shim_fast_path_arrival(struct shim_site *site, struct shim_comm *c)
{
    /* release: partner is the acquire load in all_arrived(), arrival.c */
    atomic_store_explicit(&c->line[c->rank].count, ++c->arrivals, memory_order_release);
    if (!inv_process.anonymous)
        shim_ring_sleepers(c, true);
    shim_watch_start(site, c, true, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE);
}

#pragma GCC visibility pop
#endif
