/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * world.h - MPI_COMM_WORLD as this process knows it: its ranks, which of them are in this domain,
 * and whether it is open.
 */
#ifndef SHIM_WORLD_H
#define SHIM_WORLD_H

#include "libinvasive/table/arrival_board.h"
#include "libinvasive/process.h"
#include "mpi-shim/gen/shim-pmpi.h"

#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* A domain rank is the number of a process among the ranks of MPI_COMM_WORLD (and mpi://WORLD) that
 * are known to be in this domain, in their order there; 0 to domain_ranks - 1. */

enum {
    SHIM_DOMAIN_RANK_NONE = -1, /* not in this domain, or MPI_PROC_NULL */
    SHIM_DOMAIN_RANK_ALL = -2,  /* may be any: MPI_ANY_SOURCE, a collective request */
};

struct shim_domain_rank {
    unsigned slot;
    /* The line whose `sleeping` is set while a thread of the rank sleeps in any wait.  The sleeper
     * sets it; the rank that rings it clears it with exchange. */
    struct inv_arrival_line *sleep_flag;
};

/* Written in set-up (setup.c), which joins the domain and numbers its ranks; `open`, and `group`
 * when MPI_Finalize leaves sessions open, by session.c. */
struct shim_world {
    bool joined;           /* the process has joined its domain, and what follows is known */
    bool threads_may_call; /* several threads may call MPI at once */
    _Atomic bool in_force; /* entries lead to the wrappers */
    _Atomic bool open;     /* MPI_Init has ended, and MPI_Finalize has not begun */
    bool tasks_wanted;     /* tasks should run in waits (tasks.c); the same in all ranks */
    int rank, size;        /* in MPI_COMM_WORLD */
    int me;                /* domain rank of this rank */
    /* Number of ranks in this domain.  With sessions each new managed group may add ranks.
     * release: partner is any load, which finds that many elements of domain_rank[] complete. */
    _Atomic int domain_ranks;
    struct shim_domain_rank domain_rank[INV_MAX_SLOTS];
    int *domain_rank_of; /* by rank in MPI_COMM_WORLD: domain rank or SHIM_DOMAIN_RANK_NONE */
    bool *absent; /* by rank in MPI_COMM_WORLD: it did not answer; NULL: none so far.  Writer:
                     presence.c */
    MPI_Group group; /* all ranks */
    int tag_ub;      /* the largest tag that MPI allows */
};
extern struct shim_world shim_world;

/* The ranks in MPI_COMM_WORLD of the `size` ranks of a group; MPI_UNDEFINED for ranks that are not
 * in it.  The caller frees the array.  NULL: no memory. */
int *shim_world_ranks(MPI_Group group, int size);

#pragma GCC visibility pop
#endif
