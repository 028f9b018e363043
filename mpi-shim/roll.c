/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * roll.c - is every rank of a communicator here, and managed?
 *
 * A later agreement takes messages from all ranks (agreement.c).  A rank without this library never
 * sends them: the shim is not installed on its node, the launcher did not pass the environment on,
 * or its program is linked statically.  So rank 0 first hears each rank, by
 * messages that none has to send, and answers those that it heard.  Who is not heard for some
 * seconds is not here; then nobody is managed.
 *
 * An absent rank gets no message, unless it is rank 0.  All leave MPI_Init, or have a new
 * communicator, at nearly the same time, and an answer takes much less than the difference between
 * the limits, so that rank 0 does not say yes to anyone who has given up.  Who has been absent
 * once is not waited for when there is another communicator.
 */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>

enum { TAG = 32749 };
static const uint64_t hear_limit_ns = 10000000000, answer_limit_ns = 30000000000;

static bool *known_absent; /* by rank in MPI_COMM_WORLD; NULL: nobody */

/* NULL: it is no rank of MPI_COMM_WORLD that we know, or nobody has been absent yet. */
static bool *absence_of(const struct shim_agreement *a, int rank)
{
    int world_rank = a->world_rank ? a->world_rank[rank] : -1;
    return known_absent && (unsigned)world_rank < (unsigned)shim_world.size
               ? &known_absent[world_rank]
               : NULL;
}

static bool is_absent(const struct shim_agreement *a, int rank)
{
    const bool *absence = absence_of(a, rank);
    return absence && *absence;
}

/* Set-up is not called by two threads before somebody is found absent, as a rule: at worst a note
 * is lost. */
static void note_absent(const struct shim_agreement *a, int rank)
{
    if (!known_absent && shim_world.size > 0)
        known_absent = calloc((size_t)shim_world.size, sizeof *known_absent);
    bool *absence = absence_of(a, rank);
    if (absence)
        *absence = true;
}

struct roll {
    int count; /* the others */
    int *said;
    MPI_Request *requests;
};

static bool past(uint64_t limit_ns, unsigned *looks)
{
    shim_pause(looks);
    return inv_now_ns() > limit_ns;
}

bool shim_complete_all(int count, MPI_Request *requests, uint64_t within_ns)
{
    uint64_t limit = inv_now_ns() + within_ns;
    unsigned looks = 0;
    for (;;) {
        int flag = 0;
        if (shim_pmpi.Testall(count, requests, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return false;
        if (flag)
            return true;
        if (past(limit, &looks))
            return false;
    }
}

/* Answer whom we heard.  A receive that is left takes a late vote out of the program's way. */
static int answer_heard(const struct shim_agreement *a, struct roll *roll, int answer)
{
    int absent = -1;
    for (int r = roll->count; r > 0; r--) {
        int heard = 1;
        if (is_absent(a, r))
            continue;
        if (roll->requests[r - 1] != MPI_REQUEST_NULL)
            shim_pmpi.Test(&roll->requests[r - 1], &heard, MPI_STATUS_IGNORE);
        if (!heard) {
            absent = r;
            note_absent(a, r);
            continue;
        }
        MPI_Request sending;
        if (shim_pmpi.Isend(&answer, 1, MPI_INT, r, TAG, a->comm, &sending) == MPI_SUCCESS)
            shim_complete_all(1, &sending, answer_limit_ns);
    }
    return absent;
}

/* Who has not been heard has another rank in MPI_COMM_WORLD than in a group of a session. */
static int name_of(const struct shim_agreement *a, int rank)
{
    return a->world_rank ? a->world_rank[rank] : rank;
}

static const char *hear_all(const struct shim_agreement *a, int *least)
{
    static char why[96];
    struct roll roll = {.count = a->size - 1};
    roll.said = calloc((size_t)a->size, sizeof *roll.said);
    roll.requests = malloc((size_t)a->size * sizeof *roll.requests);
    if (!roll.said || !roll.requests)
        abort(); /* the others wait for us */
    for (int r = 1; r < a->size; r++) {
        roll.requests[r - 1] = MPI_REQUEST_NULL;
        if (is_absent(a, r)) /* and has said nothing: refused */
            continue;
        shim_pmpi.Irecv(&roll.said[r - 1], 1, MPI_INT, r, TAG, a->comm, &roll.requests[r - 1]);
    }
    bool all = shim_complete_all(roll.count, roll.requests, hear_limit_ns);
    int refused = -1, mine = *least;
    for (int r = a->size - 1; all && r > 0; r--) {
        if (roll.said[r - 1] == SHIM_ROLL_REFUSED)
            refused = r;
        *least = roll.said[r - 1] < *least ? roll.said[r - 1] : *least;
    }
    int absent = answer_heard(a, &roll, all ? *least : SHIM_ROLL_REFUSED);
    if (!all) {
        snprintf(why, sizeof why, "MPI rank %d does not run under invade", name_of(a, absent));
        return why; /* the memory stays: requests are left in it */
    }
    free(roll.said);
    free(roll.requests);
    if (refused < 0)
        return mine != SHIM_ROLL_REFUSED ? NULL : "";
    snprintf(why, sizeof why, "MPI rank %d is not managed", name_of(a, refused));
    return why;
}

static const char *ask_first(const struct shim_agreement *a, int *least)
{
    int vote = *least;
    MPI_Request receiving, sending;
    *least = SHIM_ROLL_REFUSED;
    if (is_absent(a, 0))
        return "";
    if (shim_pmpi.Irecv(least, 1, MPI_INT, 0, TAG, a->comm, &receiving) != MPI_SUCCESS ||
        shim_pmpi.Isend(&vote, 1, MPI_INT, 0, TAG, a->comm, &sending) != MPI_SUCCESS)
        return "MPI rank 0 cannot be asked";
    if (!shim_complete_all(1, &sending, answer_limit_ns) ||
        !shim_complete_all(1, &receiving, answer_limit_ns)) {
        shim_pmpi.Cancel(&receiving);
        shim_complete_all(1, &receiving, answer_limit_ns);
        note_absent(a, 0);
        return "MPI rank 0 does not run under invade";
    }
    return *least != SHIM_ROLL_REFUSED ? NULL : "";
}

const char *shim_roll_call(const struct shim_agreement *a, int *least)
{
    return a->rank == 0 ? hear_all(a, least) : ask_first(a, least);
}
