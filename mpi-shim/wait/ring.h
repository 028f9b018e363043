/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ring.h - rings: without effect, and without a shared write, if the member does not sleep
 * (ring.c).
 */
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include "libinvasive/base/assertion.h"
#include "mpi-shim/ranks/comm.h"
#include "libinvasive/process.h"

#pragma GCC visibility push(hidden)

/* Rings all other members of the world that sleep. */
void shim_ring_all_members(void);
/* Rings the process in `slot` if its sleep flag, in `line`, is set; clears the flag. */
void shim_ring_line(struct inv_arrival_line *line, unsigned slot);
/* Rings this member if it sleeps.  SHIM_MEMBER_NONE: none; SHIM_MEMBER_ALL: all others. */
SHIM_INLINE void shim_ring_member(int member)
{
    inv_assert(member >= SHIM_MEMBER_ALL && member < shim_world.members);
    if (member >= 0) {
        const struct shim_member *m = &shim_world.member[member];
        /* acquire: partner is the sleeper's store in wait.c; a hint, see ring.c */
        _Atomic uint32_t *sleeping = &m->sleep_flag->sleeping;
        if (__builtin_expect(atomic_load_explicit(sleeping, memory_order_acquire), 0))
            shim_ring_line(m->sleep_flag, m->slot);
    } else if (member == SHIM_MEMBER_ALL)
        shim_ring_all_members();
}
void shim_ring_comm(const struct shim_comm *c);
/* Ring the ranks that sleep in a collective of c.  at_arrival: only if all ranks have arrived. */
void shim_ring_all_asleep(const struct shim_comm *c, bool at_arrival);
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
    shim_ring_member(shim_member(c, peer));
}

/* The member that may wait for a request's completion.  The table is fixed and forgets on
 * collision: a lost ring costs that member a timer period. */
void shim_request_note(MPI_Request request, int member);
int shim_request_member(MPI_Request request);

/* A set of members, for calls on many requests. */
struct shim_ring_set {
    uint64_t bits[INV_SLOT_WORDS];
    bool all;
};
void shim_ring_set_collect(struct shim_ring_set *set, int count, const MPI_Request *requests);
void shim_ring_set_ring(const struct shim_ring_set *set);

#pragma GCC visibility pop
#endif
