/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * agreement.c - the ranks of a communicator agree in set-up: an allreduce and an allgather.
 *
 * Both send messages in rounds (dissemination): after round k a rank knows the contributions of
 * 2^(k+1) neighbouring ranks.  MPI's non-blocking collectives do not serve: after the first one
 * on a communicator, Open MPI looks for more at every poll while that communicator lives.  Every
 * later wait of the program would pay for that.  Blocking functions do not serve either: with
 * more ranks than cores they spin through time slices, and no rank shares its core yet.
 *
 * A message of the program with the same tag cannot be mistaken for one of these.  Each rank sends
 * all of its own messages before it leaves MPI_Init or returns the new communicator, and messages
 * between two ranks do not overtake each other.
 */
#include "mpi-shim/setup/agreement.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "libinvasive/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 32748 };

/* A pause between two polls for a message that should come soon; counts polls in *polls. */
static void pause_polling(unsigned *polls)
{
    if (++*polls < 1000)
        sched_yield();
    else
        usleep(100);
}

int shim_complete(int result, MPI_Request *request)
{
    int flag = 0;
    unsigned polls = 0;
    while (result == MPI_SUCCESS && !flag) {
        result = shim_pmpi.Test(request, &flag, MPI_STATUS_IGNORE);
        if (!flag)
            pause_polling(&polls);
    }
    return result;
}

static bool is_past_limit(uint64_t limit_ns, unsigned *polls)
{
    pause_polling(polls);
    return inv_now_ns() > limit_ns;
}

bool shim_complete_all(int count, MPI_Request *requests, uint64_t within_ns)
{
    uint64_t limit = inv_now_ns() + within_ns;
    unsigned polls = 0;
    for (;;) {
        int flag = 0;
        if (shim_pmpi.Testall(count, requests, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return false;
        if (flag)
            return true;
        if (is_past_limit(limit, &polls))
            return false;
    }
}

/* The ranks that are `distance` after and before this one, modulo the size. */
static int rank_after(const struct shim_agreement *a, int distance)
{
    inv_assert(a->size > 0 && a->rank >= 0 && a->rank < a->size && distance >= 0);
    return (a->rank + distance) % a->size;
}
static int rank_before(const struct shim_agreement *a, int distance)
{
    return rank_after(a, a->size - distance);
}

static bool exchange_bytes(const struct shim_agreement *a, const void *out, int to, void *in,
                           int from, size_t bytes)
{
    MPI_Request sending, receiving;
    if (shim_pmpi.Irecv(in, (int)bytes, MPI_BYTE, from, TAG, a->comm, &receiving) != MPI_SUCCESS)
        return false;
    int sent = shim_pmpi.Isend(out, (int)bytes, MPI_BYTE, to, TAG, a->comm, &sending);
    bool good = shim_complete(MPI_SUCCESS, &receiving) == MPI_SUCCESS;
    return shim_complete(sent, &sending) == MPI_SUCCESS && good;
}

/* A minimum does not change when a rank's number arrives twice. */
bool shim_agreement_min(const struct shim_agreement *a, int *minima, int count)
{
    int theirs[SHIM_AGREEMENT_MOST];
    inv_assert(count > 0 && count <= SHIM_AGREEMENT_MOST);
    bool good = true;
    for (int distance = 1; good && distance < a->size; distance *= 2) {
        good = exchange_bytes(a, minima, rank_after(a, distance), theirs, rank_before(a, distance),
                              (size_t)count * sizeof *theirs);
        for (int i = 0; good && i < count; i++)
            minima[i] = theirs[i] < minima[i] ? theirs[i] : minima[i];
    }
    return good;
}

/* Element i of `near` is the contribution of the rank that is `i` after this one. */
bool shim_agreement_allgather(const struct shim_agreement *a, const void *mine, void *all,
                              size_t bytes)
{
    size_t size = (size_t)a->size, rank = (size_t)a->rank;
    char *near = malloc(size * bytes);
    if (!near)
        abort(); /* the other ranks wait for this one's messages */
    bool good = true;
    memcpy(near, mine, bytes);
    for (size_t known = 1; good && known < size; known *= 2) {
        size_t more = known < size - known ? known : size - known;
        inv_assert(known + more <= size);
        good = exchange_bytes(a, near, rank_before(a, (int)known), near + known * bytes,
                              rank_after(a, (int)known), more * bytes);
    }
    inv_assert(rank < size);
    memcpy((char *)all + rank * bytes, near, (size - rank) * bytes);
    memcpy(all, near + (size - rank) * bytes, rank * bytes);
    free(near);
    return good;
}
