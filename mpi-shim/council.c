/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * council.c - what the ranks of a communicator tell each other in set-up.
 *
 * By messages, in rounds: after round k each rank knows of the 2^(k+1) ranks next to it.  Not by
 * MPI's non-blocking collectives: once a communicator has had one, Open MPI looks for others
 * at every poll, for as long as the communicator lives, and a program that makes no use of them
 * would pay for that in every wait.  Not by blocking functions: with more ranks than cores they
 * spin through time slices, and nobody has been asked to share a core yet.
 *
 * A message of the program with the same tag cannot be taken for one of these: each rank has
 * sent all of its own before it leaves MPI_Init, or has its new communicator, and they do not
 * overtake each other.
 */
#include "shim.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 32748 };

void shim_pause(unsigned *looks)
{
    if (++*looks < 1000)
        sched_yield();
    else
        usleep(100);
}

int shim_complete(int result, MPI_Request *request)
{
    int flag = 0;
    unsigned looks = 0;
    while (result == MPI_SUCCESS && !flag) {
        result = shim_pmpi.Test(request, &flag, MPI_STATUS_IGNORE);
        if (!flag)
            shim_pause(&looks);
    }
    return result;
}

/* The ranks that are `distance` after and before us, round about. */
static int after(const struct shim_council *k, int distance)
{
    return (k->rank + distance) % k->size;
}
static int before(const struct shim_council *k, int distance)
{
    return after(k, k->size - distance);
}

static bool exchange(const struct shim_council *k, const void *out, int to, void *in, int from,
                     size_t bytes)
{
    MPI_Request sending, receiving;
    if (shim_pmpi.Irecv(in, (int)bytes, MPI_BYTE, from, TAG, k->comm, &receiving) != MPI_SUCCESS)
        return false;
    int sent = shim_pmpi.Isend(out, (int)bytes, MPI_BYTE, to, TAG, k->comm, &sending);
    bool good = shim_complete(MPI_SUCCESS, &receiving) == MPI_SUCCESS;
    return shim_complete(sent, &sending) == MPI_SUCCESS && good;
}

/* That a rank's number is heard of twice does not matter to a minimum. */
bool shim_agree(const struct shim_council *k, int *minima, int count)
{
    int theirs[SHIM_AGREE_MOST];
    bool good = true;
    for (int distance = 1; good && distance < k->size; distance *= 2) {
        good = exchange(k, minima, after(k, distance), theirs, before(k, distance),
                        (size_t)count * sizeof *theirs);
        for (int i = 0; good && i < count; i++)
            minima[i] = theirs[i] < minima[i] ? theirs[i] : minima[i];
    }
    return good;
}

/* In `near` what the rank `i` after us tells is number i. */
bool shim_tell_all(const struct shim_council *k, const void *mine, void *all, size_t bytes)
{
    size_t size = (size_t)k->size, rank = (size_t)k->rank;
    char *near = malloc(size * bytes);
    if (!near)
        abort(); /* the others wait for us */
    bool good = true;
    memcpy(near, mine, bytes);
    for (size_t known = 1; good && known < size; known *= 2) {
        size_t more = known < size - known ? known : size - known;
        good = exchange(k, near, before(k, (int)known), near + known * bytes,
                        after(k, (int)known), more * bytes);
    }
    memcpy((char *)all + rank * bytes, near, (size - rank) * bytes);
    memcpy(all, near + (size - rank) * bytes, rank * bytes);
    free(near);
    return good;
}
