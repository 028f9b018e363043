/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * comm.h - what the shim knows of each communicator (comm.c).
 */
#ifndef SHIM_COMM_H
#define SHIM_COMM_H

#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/ranks/world.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct shim_comm {
    MPI_Comm handle;
    int rank, size; /* of the local group */
    int peers;      /* ranks that messages can go to: size, or the remote size */
    bool inter;
    bool topology; /* has neighbours */
    bool repeated_neighbour; /* in one dimension of a grid both neighbours are the same rank */
    bool unmanaged; /* no managed group has all its ranks */
    bool all_here;  /* an intracommunicator whose ranks are all in this domain */
    bool handler_differs;   /* MPI_Test reports its errors to another handler (handler.c) */
    unsigned handlers_seen; /* shim_handlers.set when that was found out */
    bool board_tried;       /* shim_comm_board has been called */
    int board_first; /* line number, -1 none */
    /* header->count: ranks that have dropped the board.  header->sleeping: ranks that sleep in an
     * arrival barrier.  line[r].count: collectives at which rank r has arrived */
    struct inv_arrival_line *header, *line;
    uint64_t arrivals; /* of this rank, as in its line */
    int *domain_rank_of; /* peer rank -> domain rank or SHIM_DOMAIN_RANK_NONE */
    struct shim_comm *next;
};

/* The communicator's struct; NULL for an invalid handle, which MPI's own function will report. */
struct shim_comm *shim_comm_find(MPI_Comm comm);
enum { SHIM_COMM_BUCKETS = 1024 }; /* a power of two */
extern struct shim_comms {
    /* How many structs have been dropped, plus 1: shim_thread.fast_path_drops is 0 where there is
     * no fast path.  Written by drop_comm only; read by each call. */
    _Atomic unsigned drops;
    /* The structs, by handle.  Written by the functions of comm.c, under the lock. */
    pthread_mutex_t lock __attribute__((aligned(64)));
    struct shim_comm *bucket[SHIM_COMM_BUCKETS];
} shim_comms;
static inline struct shim_comm *shim_comm(MPI_Comm comm)
{
    /* acquire: partner is the increment in drop_comm, before which nothing was freed */
    unsigned drops = atomic_load_explicit(&shim_comms.drops, memory_order_acquire);
    if (__builtin_expect(shim_thread.comm_handle == comm && shim_thread.comm_drops == drops, 1))
        return shim_thread.comm;
    return shim_comm_find(comm);
}
/* Frees the communicator's struct, before the handle becomes invalid. */
void shim_comm_drop(MPI_Comm comm);
static inline void shim_forget_comm(const MPI_Comm *comm)
{
    if (comm)
        shim_comm_drop(*comm);
}
/* Forgets all communicators, when MPI ends. */
void shim_comm_drop_all(void);
/* There is a new managed group: unmanaged communicators may be managed from now on. */
void shim_comms_recheck(void);

/* The domain rank of a communicator's rank `peer`, or SHIM_DOMAIN_RANK_ALL or _NONE (world.h). */
SHIM_INLINE int shim_domain_rank(const struct shim_comm *c, int peer)
{
    return c && (unsigned)peer < (unsigned)c->peers ? c->domain_rank_of[peer]
           : peer == MPI_ANY_SOURCE                 ? SHIM_DOMAIN_RANK_ALL
                                                    : SHIM_DOMAIN_RANK_NONE;
}
/* Do all ranks of c take the same path in a wrapper?  If not, each calls the blocking function. */
static inline bool shim_managed(const struct shim_comm *c) { return c && !c->unmanaged; }
static inline bool shim_alone(const struct shim_comm *c) { return c->size == 1 && !c->inter; }

#pragma GCC visibility pop
#endif
