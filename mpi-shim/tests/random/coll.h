/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * coll.h - one call of a collective: its arguments, its buffers, and the form it is called in.
 * A call that is not over yet outlives its step (struct pending).
 */
#ifndef COLL_H
#define COLL_H

#include "random.h"

enum form { NOW, LATER, PERSISTENT_FORM };

enum coll_kind {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN, /* not between two groups */
    COLL_KINDS,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    NEIGHBOR_END
};

struct coll_call {
    enum coll_kind kind;
    enum form form;
    int step; /* in which it was made: the key of its amounts */
    bool in_place;
    int root_side, root; /* where the root is; its rank in that group */
    int root_argument;
    int rank;
    bool am_root, idle; /* idle: of the root's group in an intercommunicator, without data */
    int count, scale, type_kind, op_kind;
    MPI_Datatype type, types[2 * RANKS];
    MPI_Op op;
    size_t extent;
    int sources, targets; /* how many send to me and receive from me */
    int source_world[2 * RANKS], target_world[2 * RANKS];
    int scounts[2 * RANKS], sdispls[2 * RANKS], rcounts[2 * RANKS], rdispls[2 * RANKS];
    MPI_Aint saddresses[2 * RANKS], raddresses[2 * RANKS];
    size_t send_elements, recv_elements;
    char *send_buffer, *recv_buffer;
    void *send, *recv; /* the arguments: a buffer or MPI_IN_PLACE */
};

/* Call it.  Forms other than NOW give a request; a persistent one has to be started. */
void coll_start(struct coll_call *k, MPI_Comm comm, MPI_Request *request);

#endif
