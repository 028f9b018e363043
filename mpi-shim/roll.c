/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * roll.c - is every rank of MPI_COMM_WORLD here, and managed?
 *
 * What the ranks agree on later takes messages of all of them (council.c), which a rank without
 * this library would never send: a node where we are not installed, a launcher that did not pass
 * the environment on, a static program among others.  So rank 0 first hears each rank, by
 * messages that none has to send, and answers those that it heard.  Who is not heard for some
 * seconds is not here; then nobody is managed.
 *
 * An absent rank gets no message, unless it is rank 0.  All leave MPI_Init at nearly the same
 * time, and an answer takes much less than the difference between the limits, so that rank 0
 * does not say yes to anyone who has given up.
 */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>

enum { TAG = 32749 };
static const uint64_t hear_limit_ns = 10000000000, answer_limit_ns = 30000000000;

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
static int answer_heard(struct roll *roll, int answer)
{
    int absent = -1;
    for (int r = roll->count; r > 0; r--) {
        int heard = 1;
        if (roll->requests[r - 1] != MPI_REQUEST_NULL)
            shim_pmpi.Test(&roll->requests[r - 1], &heard, MPI_STATUS_IGNORE);
        if (!heard) {
            absent = r;
            continue;
        }
        MPI_Request sending;
        if (shim_pmpi.Isend(&answer, 1, MPI_INT, r, TAG, MPI_COMM_WORLD, &sending) == MPI_SUCCESS)
            shim_complete_all(1, &sending, answer_limit_ns);
    }
    return absent;
}

static const char *hear_all(bool mine)
{
    static char why[96];
    struct roll roll = {.count = shim_world.size - 1};
    roll.said = calloc((size_t)shim_world.size, sizeof *roll.said);
    roll.requests = malloc((size_t)shim_world.size * sizeof *roll.requests);
    if (!roll.said || !roll.requests)
        abort(); /* the others wait for us */
    for (int r = 1; r < shim_world.size; r++)
        shim_pmpi.Irecv(&roll.said[r - 1], 1, MPI_INT, r, TAG, MPI_COMM_WORLD,
                        &roll.requests[r - 1]);
    bool all = shim_complete_all(roll.count, roll.requests, hear_limit_ns);
    int refused = -1;
    for (int r = shim_world.size - 1; all && r > 0; r--)
        if (!roll.said[r - 1])
            refused = r;
    int absent = answer_heard(&roll, mine && all && refused < 0);
    if (!all) {
        snprintf(why, sizeof why, "MPI rank %d does not run under invade", absent);
        return why; /* the memory stays: requests are left in it */
    }
    free(roll.said);
    free(roll.requests);
    if (refused < 0)
        return mine ? NULL : "";
    snprintf(why, sizeof why, "MPI rank %d is not managed", refused);
    return why;
}

static const char *ask_first(bool mine)
{
    int vote = mine, answer = 0;
    MPI_Request receiving, sending;
    if (shim_pmpi.Irecv(&answer, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &receiving) != MPI_SUCCESS ||
        shim_pmpi.Isend(&vote, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &sending) != MPI_SUCCESS)
        return "MPI rank 0 cannot be asked";
    if (!shim_complete_all(1, &sending, answer_limit_ns) ||
        !shim_complete_all(1, &receiving, answer_limit_ns)) {
        shim_pmpi.Cancel(&receiving);
        shim_complete_all(1, &receiving, answer_limit_ns);
        return "MPI rank 0 does not run under invade";
    }
    return answer ? NULL : "";
}

const char *shim_roll_call(bool mine)
{
    return shim_world.rank == 0 ? hear_all(mine) : ask_first(mine);
}
