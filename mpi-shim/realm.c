/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * realm.c - realms: ranks that have agreed to be managed together, and a communicator of our own
 * by which they tell each other what the shim has to say.
 *
 * With MPI_Init there is one realm, of MPI_COMM_WORLD.  A session has no communicator to begin
 * with, and its ranks are known to each other only when they make one of a group: then these
 * ranks become a realm, unless they are all of one already.  A communicator is managed when there
 * is a realm that has all of its ranks.  Since a realm is made by all of its ranks together, each
 * of them finds the same without asking.
 *
 * Of several realms that have all ranks of a group its ranks have to use the same one: the oldest.
 * A new realm's age is agreed on by its ranks, and later than that of any that one of them knows.
 */
#include "shim.h"

#include <pthread.h>
#include <stdlib.h>

/* The oldest first.  Written under the lock, with release; read without: they live until the last
 * finalize, when nobody calls MPI any more. */
static struct shim_realm *_Atomic realms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct shim_realm *first_realm(void)
{
    return atomic_load_explicit(&realms, memory_order_acquire);
}

static struct shim_realm *next_realm(const struct shim_realm *r)
{
    return atomic_load_explicit(&r->next, memory_order_acquire);
}

static bool has(const struct shim_realm *r, const int *world_rank, int count)
{
    for (int i = 0; i < count; i++)
        if ((unsigned)world_rank[i] >= (unsigned)shim_world.size || r->rank_of[world_rank[i]] < 0)
            return false;
    return true;
}

struct shim_realm *shim_realm_of(const int *world_rank, int count)
{
    struct shim_realm *r = first_realm();
    while (r && !has(r, world_rank, count))
        r = next_realm(r);
    return r;
}

bool shim_realm_any(void) { return first_realm() != NULL; }

struct shim_realm *shim_realm_of_all(void)
{
    struct shim_realm *r = first_realm();
    while (r && r->size < shim_world.size)
        r = next_realm(r);
    return r;
}

int shim_realm_latest(void)
{
    int age = 0;
    for (struct shim_realm *r = first_realm(); r; r = next_realm(r))
        age = r->age > age ? r->age : age;
    return age;
}

static bool older(const struct shim_realm *a, const struct shim_realm *b)
{
    return a->age < b->age || (a->age == b->age && a->number < b->number);
}

void shim_realm_add(const struct shim_agreement *a, MPI_Comm own, int age)
{
    struct shim_realm *r = calloc(1, sizeof *r);
    if (!r || !(r->rank_of = malloc((size_t)shim_world.size * sizeof *r->rank_of)))
        abort(); /* the others go on with theirs */
    for (int w = 0; w < shim_world.size; w++)
        r->rank_of[w] = -1;
    for (int i = 0; i < a->size; i++)
        r->rank_of[a->world_rank[i]] = i;
    r->own = own;
    r->size = a->size;
    r->age = age;
    r->number = a->number;
    pthread_mutex_lock(&lock);
    struct shim_realm *_Atomic *link = &realms;
    struct shim_realm *at;
    while ((at = atomic_load_explicit(link, memory_order_relaxed)) && older(at, r))
        link = &at->next;
    atomic_store_explicit(&r->next, at, memory_order_relaxed);
    atomic_store_explicit(link, r, memory_order_release);
    pthread_mutex_unlock(&lock);
}

void shim_realms_end(void)
{
    struct shim_realm *r = first_realm(), *next;
    atomic_store_explicit(&realms, NULL, memory_order_relaxed);
    for (; r; r = next) {
        next = next_realm(r);
        if (r->own != MPI_COMM_NULL)
            shim_pmpi.Comm_free(&r->own);
        free(r->rank_of);
        free(r);
    }
}

void shim_progress(void)
{
    int flag; /* stays 0.  Not on MPI_COMM_SELF: MPICH looks nowhere else then */
    struct shim_realm *r = first_realm();
    while (r && r->own == MPI_COMM_NULL)
        r = next_realm(r);
    if (r)
        shim_pmpi.Iprobe(MPI_ANY_SOURCE, SHIM_TAG_NOBODY, r->own, &flag, MPI_STATUS_IGNORE);
}
