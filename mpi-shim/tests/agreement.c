/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * agreement.c - what ranks agree on in set-up (mpi-shim/setup/agreement.c).  test_agreement.py links
 * it with that file and an MPI: no resource manager, no wrappers.
 *
 * All ranks draw the same numbers, so each knows what the others contribute.  Some are late, now
 * and then.  After the last agreement, messages of the program have its tag.
 */
#include "mpi-shim/setup/agreement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, TAG = 32748, LONGEST = 5000 };

static struct shim_agreement all_ranks;
struct shim_pmpi shim_pmpi;
static unsigned seed = 1;

static int draw(void)
{
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 8 & 0xffff);
}

static void require(bool good, const char *what, int round)
{
    if (good)
        return;
    fprintf(stderr, "rank %d of %d, round %d: %s\n", all_ranks.rank, all_ranks.size, round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void be_late_or_not(void)
{
    int late_rank = draw() % (2 * all_ranks.size);
    if (late_rank == all_ranks.rank)
        usleep(3000);
}

/* Some numbers; any rank may have the minimum of each. */
static void allreduce(int round)
{
    int count = 1 + draw() % SHIM_AGREEMENT_MOST;
    int mine[SHIM_AGREEMENT_MOST], least[SHIM_AGREEMENT_MOST];
    for (int i = 0; i < count; i++)
        for (int r = 0; r < all_ranks.size; r++) {
            int number = draw() - 0x8000;
            if (r == all_ranks.rank)
                mine[i] = number;
            if (r == 0 || number < least[i])
                least[i] = number;
        }
    be_late_or_not();
    require(shim_agreement_min(&all_ranks, mine, count), "allreduce failed", round);
    require(memcmp(mine, least, (size_t)count * sizeof *mine) == 0, "not the least", round);
}

static char byte_of(int rank, int i, int round) { return (char)(rank * 7 + i * 3 + round); }

static void allgather(int round)
{
    int bytes = draw() % 4 ? 1 + draw() % 40 : 1 + draw() % LONGEST;
    size_t size = (size_t)all_ranks.size;
    char *mine = malloc((size_t)bytes), *all = malloc(size * (size_t)bytes + 1);
    if (!mine || !all)
        abort();
    for (int i = 0; i < bytes; i++)
        mine[i] = byte_of(all_ranks.rank, i, round);
    all[size * (size_t)bytes] = 'x';
    be_late_or_not();
    require(shim_agreement_allgather(&all_ranks, mine, all, (size_t)bytes), "allgather failed",
            round);
    for (int r = 0; r < all_ranks.size; r++)
        for (int i = 0; i < bytes; i++)
            require(all[r * bytes + i] == byte_of(r, i, round), "not what the rank contributed", round);
    require(all[size * (size_t)bytes] == 'x', "more than all was written", round);
    free(mine);
    free(all);
}

static void messages_of_the_program(void)
{
    int mine = all_ranks.rank + 1000, got;
    MPI_Request *sent = malloc((size_t)all_ranks.size * sizeof *sent);
    for (int r = 0; sent && r < all_ranks.size; r++)
        MPI_Isend(&mine, 1, MPI_INT, r, TAG, MPI_COMM_WORLD, &sent[r]);
    for (int r = 0; r < all_ranks.size; r++) {
        MPI_Recv(&got, 1, MPI_INT, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        require(got == r + 1000, "not the program's message", r);
    }
    for (int r = 0; sent && r < all_ranks.size; r++)
        MPI_Wait(&sent[r], MPI_STATUS_IGNORE);
    free(sent);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    all_ranks.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &all_ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks.size);
    shim_pmpi.Irecv = PMPI_Irecv;
    shim_pmpi.Isend = PMPI_Isend;
    shim_pmpi.Test = PMPI_Test;
    for (int round = 0; round < ROUNDS; round++) {
        if (draw() % 2)
            allreduce(round);
        else
            allgather(round);
    }
    messages_of_the_program();
    if (all_ranks.rank == 0)
        puts("agreed");
    MPI_Finalize();
    return 0;
}
