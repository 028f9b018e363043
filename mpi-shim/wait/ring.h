/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ring.h - rings: they wake ranks that sleep in a wait, and write nothing shared if the rank does
 * not sleep (ring.c).
 */
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include "libinvasive/base/assertion.h"
#include "mpi-shim/ranks/comm.h"
#include "libinvasive/process.h"

#pragma GCC visibility push(hidden)

/* Rings all other ranks of the domain that sleep. */
void shim_ring_all(void);
/* Rings the process in `slot` if its sleep flag, in `line`, is set; clears the flag. */
void shim_ring_line(struct inv_arrival_line *line, unsigned slot);
/* Rings the rank with this domain rank if it sleeps.  SHIM_DOMAIN_RANK_NONE: no rank;
 * SHIM_DOMAIN_RANK_ALL: all other ranks. */
SHIM_INLINE void shim_ring(int domain_rank)
{
    inv_assert(domain_rank >= SHIM_DOMAIN_RANK_ALL && domain_rank < shim_world.domain_ranks);
    if (domain_rank >= 0) {
        const struct shim_domain_rank *r = &shim_world.domain_rank[domain_rank];
        /* acquire: partner is the sleeper's store in wait.c; a hint, see ring.c */
        _Atomic uint32_t *sleeping = &r->sleep_flag->sleeping;
        if (__builtin_expect(atomic_load_explicit(sleeping, memory_order_acquire), 0))
            shim_ring_line(r->sleep_flag, r->slot);
    } else if (domain_rank == SHIM_DOMAIN_RANK_ALL)
        shim_ring_all();
}
/* Rings the other ranks of c that sleep, in any wait. */
void shim_ring_comm(const struct shim_comm *c);
/* Rings the ranks that sleep in a collective of c.  at_arrival: only if all ranks have arrived. */
void shim_ring_all_asleep(const struct shim_comm *c, bool at_arrival);
/* The same, if the board shows that one sleeps; shim_ring_comm if c has no board. */
SHIM_INLINE void shim_ring_sleepers(const struct shim_comm *c, bool at_arrival)
{
    /* acquire: partner is count_sleeper in wait.c */
    if (!c->header)
        shim_ring_comm(c);
    else if (__builtin_expect(
                 atomic_load_explicit(&c->header->sleeping, memory_order_acquire) != 0, 0))
        shim_ring_all_asleep(c, at_arrival);
}
static inline void shim_ring_rank(const struct shim_comm *c, int peer)
{
    shim_ring(shim_domain_rank(c, peer));
}

/* Stores, and finds, the domain rank of the process that may wait for a request's completion.  The
 * table has a fixed size, and a collision overwrites an entry: then the rank is not rung, and
 * sleeps to the end of its slice. */
void shim_request_set_peer(MPI_Request request, int domain_rank);
int shim_request_peer(MPI_Request request);

/* A set of domain ranks, for calls on many requests. */
struct shim_ring_set {
    uint64_t bits[INV_SLOT_WORDS];
    bool all;
};
/* Adds the ranks that may wait for one of the `count` requests. */
void shim_ring_set_collect(struct shim_ring_set *set, int count, const MPI_Request *requests);
/* Rings all ranks of the set. */
void shim_ring_set_ring(const struct shim_ring_set *set);

#pragma GCC visibility pop
#endif
