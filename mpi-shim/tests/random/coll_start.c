/* SPDX-License-Identifier: GPL-3.0-or-later */
/* coll_start.c - the call itself, in the form that was drawn. */
#include "coll.h"

#if PERSISTENT_COLLECTIVES
#define CALL(NAME, INAME, ...)                                      \
    do {                                                            \
        if (k->form == NOW)                                         \
            MPI_##NAME(__VA_ARGS__);                                \
        else if (k->form == LATER)                                  \
            MPI_##INAME(__VA_ARGS__, request);                      \
        else                                                        \
            MPI_##NAME##_init(__VA_ARGS__, MPI_INFO_NULL, request); \
    } while (0)
#else
#define CALL(NAME, INAME, ...)                 \
    do {                                       \
        if (k->form == NOW)                    \
            MPI_##NAME(__VA_ARGS__);           \
        else                                   \
            MPI_##INAME(__VA_ARGS__, request); \
    } while (0)
#endif

static void start_rooted(struct coll_call *k, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype t = k->type;
    void *s = k->send, *r = k->recv;
    int n = k->count, root = k->root_argument;
    switch (k->kind) {
    case BCAST:
        CALL(Bcast, Ibcast, r, n, t, root, comm);
        break;
    case GATHER:
        CALL(Gather, Igather, s, n, t, r, n, t, root, comm);
        break;
    case GATHERV:
        CALL(Gatherv, Igatherv, s, k->scounts[0], t, r, k->rcounts, k->rdispls, t, root, comm);
        break;
    case SCATTER:
        CALL(Scatter, Iscatter, s, n, t, r, n, t, root, comm);
        break;
    case SCATTERV:
        CALL(Scatterv, Iscatterv, s, k->scounts, k->sdispls, t, r, k->rcounts[0], t, root, comm);
        break;
    default:
        CALL(Reduce, Ireduce, s, r, n, t, k->op, root, comm);
    }
}

static void start_reduction(struct coll_call *k, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype t = k->type;
    void *s = k->send, *r = k->recv;
    int n = k->count;
    switch (k->kind) {
    case ALLREDUCE:
        CALL(Allreduce, Iallreduce, s, r, n, t, k->op, comm);
        break;
    case REDUCE_SCATTER:
        CALL(Reduce_scatter, Ireduce_scatter, s, r, k->rcounts, t, k->op, comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        CALL(Reduce_scatter_block, Ireduce_scatter_block, s, r, n, t, k->op, comm);
        break;
    case SCAN:
        CALL(Scan, Iscan, s, r, n, t, k->op, comm);
        break;
    default:
        CALL(Exscan, Iexscan, s, r, n, t, k->op, comm);
    }
}

static void start_all(struct coll_call *k, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype t = k->type;
    void *s = k->send, *r = k->recv;
    int n = k->count;
    switch (k->kind) {
    case BARRIER:
        CALL(Barrier, Ibarrier, comm);
        break;
    case ALLGATHER:
        CALL(Allgather, Iallgather, s, n, t, r, n, t, comm);
        break;
    case ALLGATHERV:
        CALL(Allgatherv, Iallgatherv, s, k->scounts[0], t, r, k->rcounts, k->rdispls, t, comm);
        break;
    case ALLTOALL:
        CALL(Alltoall, Ialltoall, s, n, t, r, n, t, comm);
        break;
    case ALLTOALLV:
        CALL(Alltoallv, Ialltoallv, s, k->scounts, k->sdispls, t, r, k->rcounts, k->rdispls, t,
             comm);
        break;
    default:
        CALL(Alltoallw, Ialltoallw, s, k->scounts, k->sdispls, k->types, r, k->rcounts, k->rdispls,
             k->types, comm);
    }
}

static void start_neighbour(struct coll_call *k, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype t = k->type;
    void *s = k->send, *r = k->recv;
    int n = k->count;
    switch (k->kind) {
    case NEIGHBOR_ALLGATHER:
        CALL(Neighbor_allgather, Ineighbor_allgather, s, n, t, r, n, t, comm);
        break;
    case NEIGHBOR_ALLGATHERV:
        CALL(Neighbor_allgatherv, Ineighbor_allgatherv, s, k->scounts[0], t, r, k->rcounts,
             k->rdispls, t, comm);
        break;
    case NEIGHBOR_ALLTOALL:
        CALL(Neighbor_alltoall, Ineighbor_alltoall, s, n, t, r, n, t, comm);
        break;
    case NEIGHBOR_ALLTOALLV:
        CALL(Neighbor_alltoallv, Ineighbor_alltoallv, s, k->scounts, k->sdispls, t, r, k->rcounts,
             k->rdispls, t, comm);
        break;
    default:
        CALL(Neighbor_alltoallw, Ineighbor_alltoallw, s, k->scounts, k->saddresses, k->types, r,
             k->rcounts, k->raddresses, k->types, comm);
    }
}

void coll_start(struct coll_call *k, MPI_Comm comm, MPI_Request *request)
{
    if (k->kind > COLL_KINDS)
        start_neighbour(k, comm, request);
    else if (k->kind >= ALLREDUCE)
        start_reduction(k, comm, request);
    else if (k->kind == REDUCE || (k->kind >= BCAST && k->kind <= SCATTERV))
        start_rooted(k, comm, request);
    else
        start_all(k, comm, request);
}
