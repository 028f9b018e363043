/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * managed_group.c - managed groups: ranks that have agreed to be managed together, and a
 * communicator of the shim for its messages between them.
 *
 * MPI_Init makes one managed group, of MPI_COMM_WORLD.  A session begins without a communicator:
 * its ranks know each other only when they make one from a group.  Then these ranks become a
 * managed group, unless one managed group has all of them already.  A communicator is managed if a
 * managed group has all of its ranks.  All ranks of a managed group make it together, so each rank
 * finds this out locally, with the same result.
 *
 * If several managed groups have all ranks of a communicator, its ranks use the oldest one.  The
 * ranks of a new managed group agree on its age, which exceeds all ages that one of them knows.
 */
#include "mpi-shim/ranks/managed_group.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/world.h"

#include <pthread.h>
#include <stdlib.h>

/* Written by shim_managed_group_add, under the lock, with release, and by shim_managed_groups_end.
 * Read without the lock: a managed group lives until the last finalize, when no thread calls MPI
 * any more. */
static struct {
    pthread_mutex_t lock;
    struct shim_managed_group *_Atomic oldest; /* the others follow by age */
} groups = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct shim_managed_group *first_group(void)
{
    return atomic_load_explicit(&groups.oldest, memory_order_acquire);
}

static struct shim_managed_group *next_group(const struct shim_managed_group *g)
{
    return atomic_load_explicit(&g->next, memory_order_acquire);
}

static bool has_ranks(const struct shim_managed_group *g, const int *world_rank, int count)
{
    for (int i = 0; i < count; i++)
        if ((unsigned)world_rank[i] >= (unsigned)shim_world.size || g->rank_of[world_rank[i]] < 0)
            return false;
    return true;
}

struct shim_managed_group *shim_managed_group_of(const int *world_rank, int count)
{
    struct shim_managed_group *g = first_group();
    while (g && !has_ranks(g, world_rank, count))
        g = next_group(g);
    return g;
}

bool shim_managed_group_any(void) { return first_group() != NULL; }

struct shim_managed_group *shim_managed_group_of_all(void)
{
    struct shim_managed_group *g = first_group();
    while (g && g->size < shim_world.size)
        g = next_group(g);
    return g;
}

int shim_managed_group_latest_age(void)
{
    int age = 0;
    for (struct shim_managed_group *g = first_group(); g; g = next_group(g))
        age = g->age > age ? g->age : age;
    return age;
}

static bool is_older(const struct shim_managed_group *a, const struct shim_managed_group *b)
{
    return a->age < b->age || (a->age == b->age && a->number < b->number);
}

void shim_managed_group_add(const int *world_rank, int size, int number, MPI_Comm own, int age)
{
    struct shim_managed_group *g = calloc(1, sizeof *g);
    if (!g || !(g->rank_of = malloc((size_t)shim_world.size * sizeof *g->rank_of)))
        abort(); /* the other ranks use the new group */
    for (int w = 0; w < shim_world.size; w++)
        g->rank_of[w] = -1;
    for (int i = 0; i < size; i++) {
        inv_assert(world_rank[i] >= 0 && world_rank[i] < shim_world.size);
        inv_assert(g->rank_of[world_rank[i]] < 0); /* a rank is in a group once */
        g->rank_of[world_rank[i]] = i;
    }
    inv_assert(size > 0 && size <= shim_world.size);
    g->own = own;
    g->size = size;
    g->age = age;
    g->number = number;
    pthread_mutex_lock(&groups.lock);
    struct shim_managed_group *_Atomic *link = &groups.oldest;
    struct shim_managed_group *at;
    while ((at = atomic_load_explicit(link, memory_order_relaxed)) && is_older(at, g))
        link = &at->next;
    atomic_store_explicit(&g->next, at, memory_order_relaxed);
    atomic_store_explicit(link, g, memory_order_release);
    pthread_mutex_unlock(&groups.lock);
}

void shim_managed_groups_end(void)
{
    struct shim_managed_group *g = first_group(), *next;
    atomic_store_explicit(&groups.oldest, NULL, memory_order_relaxed);
    for (; g; g = next) {
        next = next_group(g);
        if (g->own != MPI_COMM_NULL)
            shim_pmpi.Comm_free(&g->own);
        free(g->rank_of);
        free(g);
    }
}

void shim_progress(void)
{
    int flag; /* stays 0.  Not on MPI_COMM_SELF: MPICH looks nowhere else then */
    struct shim_managed_group *g = first_group();
    while (g && g->own == MPI_COMM_NULL)
        g = next_group(g);
    if (g)
        shim_pmpi.Iprobe(MPI_ANY_SOURCE, SHIM_TAG_UNUSED, g->own, &flag, MPI_STATUS_IGNORE);
}
