/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * comm.c - what the shim knows of each communicator: which of its ranks are in this domain, and
 * where its arrival board is (board.c makes it).
 *
 * The ranks of a managed group find out once which of them are in this domain (setup.c).  For a
 * communicator each rank only translates rank numbers, which is local.
 */
#define _GNU_SOURCE
#include "mpi-shim/ranks/comm.h"
#include "libinvasive/table/arrival_board.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/dispatch/guard.h"
#include "libinvasive/record/record.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/handler.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "libinvasive/process.h"

#include <stdlib.h>
#include <string.h>

struct shim_comms shim_comms = {.drops = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct shim_comm **bucket_of(MPI_Comm comm)
{
    uint64_t key = (uint64_t)(uintptr_t)comm * UINT64_C(0x9e3779b97f4a7c15);
    return &shim_comms.bucket[key >> 54];
}

/* The ranks in MPI_COMM_WORLD of a communicator's group, MPI_UNDEFINED for ranks that are not in
 * it; for the caller to free. */
static int *get_world_ranks(int (*get_group)(MPI_Comm, MPI_Group *), MPI_Comm comm, int size)
{
    MPI_Group group;
    get_group(comm, &group);
    int *ranks = shim_world_ranks(group, size);
    if (!ranks)
        abort();
    shim_pmpi.Group_free(&group);
    return ranks;
}

static bool in_world(int world_rank) { return world_rank >= 0 && world_rank < shim_world.size; }

/* Does one managed group have the ranks of both groups of an intercommunicator? */
static bool in_managed_group(struct shim_comm *c, const int *peers)
{
    int *local = get_world_ranks(shim_pmpi.Comm_group, c->handle, c->size);
    int *all = malloc((size_t)(c->size + c->peers) * sizeof *all);
    if (!all)
        abort();
    memcpy(all, local, (size_t)c->size * sizeof *all);
    memcpy(all + c->size, peers, (size_t)c->peers * sizeof *all);
    bool found = shim_managed_group_of(all, c->size + c->peers) != NULL;
    free(local);
    free(all);
    return found;
}

/* Domain ranks of the ranks that messages can go to. */
static void find_domain_ranks(struct shim_comm *c)
{
    int *ranks = get_world_ranks(c->inter ? shim_pmpi.Comm_remote_group : shim_pmpi.Comm_group,
                                 c->handle, c->peers);
    bool unmanaged =
        c->inter ? !in_managed_group(c, ranks) : !shim_managed_group_of(ranks, c->peers);
    bool all_here = !c->inter && !unmanaged;
    for (int r = 0; r < c->peers; r++) {
        c->domain_rank_of[r] =
            in_world(ranks[r]) ? shim_world.domain_rank_of[ranks[r]] : SHIM_DOMAIN_RANK_NONE;
        inv_assert(c->domain_rank_of[r] >= SHIM_DOMAIN_RANK_NONE &&
                   c->domain_rank_of[r] < shim_world.domain_ranks);
        if (c->domain_rank_of[r] == SHIM_DOMAIN_RANK_NONE)
            all_here = false;
    }
    c->unmanaged = unmanaged;
    c->all_here = all_here;
    free(ranks);
}

/* A handle that is no communicator is the program's error, which the wrapped function reports.  So
 * no error handler is called here. */
static bool get_rank(MPI_Comm comm, int *rank)
{
    shim_errors_return_begin();
    bool good = shim_pmpi.Comm_rank(comm, rank) == MPI_SUCCESS;
    shim_errors_return_end();
    return good;
}

/* In a periodic dimension of one or two ranks both neighbours are the same rank. */
static bool has_repeated_neighbour(MPI_Comm comm)
{
    enum { MOST_DIMS = 16 };
    int n = 0, dims[MOST_DIMS], periods[MOST_DIMS], coords[MOST_DIMS];
    shim_pmpi.Cartdim_get(comm, &n);
    if (n > MOST_DIMS)
        return true;
    shim_pmpi.Cart_get(comm, n, dims, periods, coords);
    for (int d = 0; d < n; d++)
        if (periods[d] && dims[d] <= 2)
            return true;
    return false;
}

static struct shim_comm *make_comm(MPI_Comm comm)
{
    int rank, inter = 0, topology = MPI_UNDEFINED;
    /* With the default handlers an invalid handle ends the job in any case (handler.c). */
    bool fatal = shim_handlers_are_defaults();
    if (fatal ? shim_pmpi.Comm_rank(comm, &rank) != MPI_SUCCESS : !get_rank(comm, &rank))
        return NULL;
    struct shim_comm *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->handle = comm;
    c->rank = rank;
    c->board_first = -1;
    shim_pmpi.Comm_size(comm, &c->size);
    shim_pmpi.Comm_test_inter(comm, &inter);
    shim_pmpi.Topo_test(comm, &topology);
    c->inter = inter;
    c->topology = topology != MPI_UNDEFINED;
    c->repeated_neighbour = topology == MPI_CART && has_repeated_neighbour(comm);
    c->peers = c->size;
    if (c->inter)
        shim_pmpi.Comm_remote_size(comm, &c->peers);
    c->domain_rank_of = malloc((size_t)c->peers * sizeof *c->domain_rank_of);
    if (!c->domain_rank_of)
        abort();
    inv_assert(c->rank >= 0 && c->rank < c->size && c->peers >= 0);
    find_domain_ranks(c);
    return c;
}

static struct shim_comm *find_or_make_comm(MPI_Comm comm)
{
    pthread_mutex_lock(&shim_comms.lock);
    struct shim_comm **bucket = bucket_of(comm), *c = *bucket;
    while (c && c->handle != comm)
        c = c->next;
    if (!c && (c = make_comm(comm))) {
        c->next = *bucket;
        *bucket = c;
    }
    pthread_mutex_unlock(&shim_comms.lock);
    return c;
}

/* A new managed group may have all ranks of a communicator that was unmanaged before.  All ranks of
 * that communicator must see the change, also those that have used it already. */
void shim_comms_recheck(void)
{
    int rank;
    pthread_mutex_lock(&shim_comms.lock);
    for (int b = 0; b < SHIM_COMM_BUCKETS; b++)
        for (struct shim_comm *c = shim_comms.bucket[b]; c; c = c->next)
            if (c->unmanaged && (c->handle != MPI_COMM_WORLD || shim_world.open) &&
                get_rank(c->handle, &rank))
                find_domain_ranks(c);
    pthread_mutex_unlock(&shim_comms.lock);
}

struct shim_comm *shim_comm_find(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return NULL;
    /* acquire: as in shim_comm */
    unsigned drops = atomic_load_explicit(&shim_comms.drops, memory_order_acquire);
    struct shim_comm *c = find_or_make_comm(comm);
    if (c) {
        shim_thread.comm_drops = drops;
        shim_thread.fast_path_drops = shim_hooked() && !inv_has_sites() ? drops : 0;
        shim_thread.comm = c;
        shim_thread.comm_handle = comm;
    }
    return c;
}

/* The last rank to leave frees the lines: before that, others may still read them. */
static void drop_comm(struct shim_comm *c)
{
    inv_assert((c->board_first >= 0) == (c->header != NULL));
    if (c->board_first >= 0) {
        unsigned lines = (unsigned)c->size + 1;
        /* acq_rel: what any rank did to a line comes before it is freed */
        if (atomic_fetch_add_explicit(&c->header->count, 1, memory_order_acq_rel) + 1 ==
            (uint64_t)c->size)
            inv_arrival_board_free(inv_process.table, c->board_first, lines);
    }
    atomic_fetch_add_explicit(&shim_comms.drops, 1, memory_order_release);
    free(c->domain_rank_of);
    free(c);
}

void shim_comm_drop(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
        return; /* an error, which the MPI library reports */
    pthread_mutex_lock(&shim_comms.lock);
    for (struct shim_comm **link = bucket_of(comm); *link; link = &(*link)->next)
        if ((*link)->handle == comm) {
            struct shim_comm *c = *link;
            *link = c->next;
            drop_comm(c);
            break;
        }
    pthread_mutex_unlock(&shim_comms.lock);
}

void shim_comm_drop_all(void)
{
    pthread_mutex_lock(&shim_comms.lock);
    for (int b = 0; b < SHIM_COMM_BUCKETS; b++)
        while (shim_comms.bucket[b]) {
            struct shim_comm *c = shim_comms.bucket[b];
            shim_comms.bucket[b] = c->next;
            drop_comm(c);
        }
    pthread_mutex_unlock(&shim_comms.lock);
}
