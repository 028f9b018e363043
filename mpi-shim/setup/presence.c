/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * presence.c - presence check: does every rank of a communicator run this library, and managed?
 *
 * A later agreement takes messages from all ranks (agreement.c).  A rank without this library never
 * sends them: the shim is not installed on its node, the launcher did not pass the environment on,
 * or its program is linked statically.  So each rank first sends its state to rank 0, which answers
 * the ranks whose message arrived within hear_limit_ns.  The others are absent; then no rank is
 * managed.
 *
 * An absent rank gets no message, unless it is rank 0.  All ranks leave MPI_Init, or have a new
 * communicator, at nearly the same time.  An answer takes much less than answer_limit_ns less
 * hear_limit_ns, so rank 0 never answers a rank that has stopped waiting.  A rank that was absent
 * once is not waited for at the next communicator.
 */
#include "mpi-shim/setup/presence.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/setup/agreement.h"

#include <stdio.h>
#include <stdlib.h>

enum { TAG = 32749 };
/* Rank 0 waits 10 s for the states: ranks of a large job start seconds apart.  The others wait 30 s
 * for its answer: the same, and time enough to answer all of them. */
static const uint64_t hear_limit_ns = 10000000000, answer_limit_ns = 30000000000;

/* NULL: no rank has been absent yet, or this one is not in MPI_COMM_WORLD. */
static bool *absence_of(const struct shim_agreement *a, int rank)
{
    int world_rank = a->world_rank ? a->world_rank[rank] : -1;
    return shim_world.absent && (unsigned)world_rank < (unsigned)shim_world.size
               ? &shim_world.absent[world_rank]
               : NULL;
}

static bool is_absent(const struct shim_agreement *a, int rank)
{
    const bool *absence = absence_of(a, rank);
    return absence && *absence;
}

/* As a rule only one thread is in set-up when the first rank is found absent.  At worst a note is
 * lost. */
static void mark_absent(const struct shim_agreement *a, int rank)
{
    if (!shim_world.absent && shim_world.size > 0)
        shim_world.absent = calloc((size_t)shim_world.size, sizeof *shim_world.absent);
    bool *absence = absence_of(a, rank);
    if (absence)
        *absence = true;
}

/* What rank 0 receives. */
struct states {
    int count; /* number of the other ranks */
    int *state; /* of rank r: element r - 1 */
    MPI_Request *requests;
};

/* Answers the ranks that are present.  A receive that stays open takes a late state, which the
 * program would receive else.  Returns the first absent rank, or -1. */
static int answer_present(const struct shim_agreement *a, struct states *states, int answer)
{
    int absent = -1;
    for (int r = states->count; r > 0; r--) {
        int present = 1;
        if (is_absent(a, r))
            continue;
        if (states->requests[r - 1] != MPI_REQUEST_NULL)
            shim_pmpi.Test(&states->requests[r - 1], &present, MPI_STATUS_IGNORE);
        if (!present) {
            absent = r;
            mark_absent(a, r);
            continue;
        }
        MPI_Request sending;
        if (shim_pmpi.Isend(&answer, 1, MPI_INT, r, TAG, a->comm, &sending) == MPI_SUCCESS)
            shim_complete_all(1, &sending, answer_limit_ns);
    }
    return absent;
}

/* The rank's number for messages to users: that in MPI_COMM_WORLD, which differs in a group of a
 * session. */
static int rank_name(const struct shim_agreement *a, int rank)
{
    return a->world_rank ? a->world_rank[rank] : rank;
}

static const char *check_as_root(const struct shim_agreement *a, int *least, char *text)
{
    struct states states = {.count = a->size - 1};
    states.state = calloc((size_t)a->size, sizeof *states.state);
    states.requests = malloc((size_t)a->size * sizeof *states.requests);
    if (!states.state || !states.requests)
        abort(); /* the other ranks wait for the answer */
    for (int r = 1; r < a->size; r++) {
        states.requests[r - 1] = MPI_REQUEST_NULL;
        if (is_absent(a, r)) /* its state stays 0: refused */
            continue;
        shim_pmpi.Irecv(&states.state[r - 1], 1, MPI_INT, r, TAG, a->comm, &states.requests[r - 1]);
    }
    bool all = shim_complete_all(states.count, states.requests, hear_limit_ns);
    int refused = -1, mine = *least;
    for (int r = a->size - 1; all && r > 0; r--) {
        if (states.state[r - 1] == SHIM_PRESENCE_REFUSED)
            refused = r;
        *least = states.state[r - 1] < *least ? states.state[r - 1] : *least;
    }
    int absent = answer_present(a, &states, all ? *least : SHIM_PRESENCE_REFUSED);
    if (!all) {
        snprintf(text, SHIM_PRESENCE_BYTES, "MPI rank %d does not run under invade",
                 rank_name(a, absent));
        return text; /* states is not freed: open receives write into it */
    }
    free(states.state);
    free(states.requests);
    if (refused < 0)
        return mine != SHIM_PRESENCE_REFUSED ? NULL : "";
    snprintf(text, SHIM_PRESENCE_BYTES, "MPI rank %d is not managed", rank_name(a, refused));
    return text;
}

static const char *check_as_other(const struct shim_agreement *a, int *least)
{
    int state = *least;
    MPI_Request receiving, sending;
    *least = SHIM_PRESENCE_REFUSED;
    if (is_absent(a, 0))
        return "";
    if (shim_pmpi.Irecv(least, 1, MPI_INT, 0, TAG, a->comm, &receiving) != MPI_SUCCESS ||
        shim_pmpi.Isend(&state, 1, MPI_INT, 0, TAG, a->comm, &sending) != MPI_SUCCESS)
        return "MPI rank 0 cannot be asked";
    if (!shim_complete_all(1, &sending, answer_limit_ns) ||
        !shim_complete_all(1, &receiving, answer_limit_ns)) {
        shim_pmpi.Cancel(&receiving);
        shim_complete_all(1, &receiving, answer_limit_ns);
        mark_absent(a, 0);
        return "MPI rank 0 does not run under invade";
    }
    return *least != SHIM_PRESENCE_REFUSED ? NULL : "";
}

const char *shim_presence_check(const struct shim_agreement *a, int *least, char *text)
{
    return a->rank == 0 ? check_as_root(a, least, text) : check_as_other(a, least);
}
