/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ring.c - rings: waking the ranks of the domain that sleep in a wait that this rank may have
 * ended.
 *
 * A ring costs the woken process a turn on its core.  So only ranks whose sleep flag is set are
 * rung, only by calls that post or complete something, and only once per sleep: the ringer clears
 * the flag.  A sleeper sets its flag, checks once more, and sleeps a short slice first.  A ring
 * that came too early to see the flag is made up for by the end of that slice, so the poster needs
 * no fence.
 */
#include "mpi-shim/wait/ring.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/world.h"
#include "libinvasive/process.h"

#include <sched.h>

enum { PEERS = 4096 }; /* power of two */

/* Bits of the request's handle, which may be an integer or a pointer, above the domain rank + 3.
 * Written by shim_request_set_peer.  relaxed: a hint that orders no other data. */
static _Atomic uint64_t peers[PEERS];

static uint64_t mix_handle(MPI_Request request)
{
    return (uint64_t)(uintptr_t)request * UINT64_C(0x9e3779b97f4a7c15);
}

/* The index is made of the bits that the tag lacks. */
static _Atomic uint64_t *peer_entry(uint64_t mix) { return &peers[mix >> 52]; }
static uint64_t tag_of(uint64_t mix) { return mix << 16; }

void shim_request_set_peer(MPI_Request request, int domain_rank)
{
    uint64_t mix = mix_handle(request);
    inv_assert(domain_rank + 3 > 0 && domain_rank < INV_MAX_SLOTS);
    atomic_store_explicit(peer_entry(mix), tag_of(mix) | (uint16_t)(domain_rank + 3),
                          memory_order_relaxed);
}

int shim_request_peer(MPI_Request request)
{
    uint64_t mix = mix_handle(request);
    uint64_t word = atomic_load_explicit(peer_entry(mix), memory_order_relaxed);
    int domain_rank = (int)(word & 0xffff) - 3;
    return word >> 16 == tag_of(mix) >> 16 && domain_rank < shim_world.domain_ranks
               ? domain_rank
               : SHIM_DOMAIN_RANK_NONE;
}

void shim_ring_line(struct inv_arrival_line *line, unsigned slot)
{
    /* acquire: partner is the sleeper's store in wait.c; a hint, see the top */
    if (atomic_load_explicit(&line->sleeping, memory_order_acquire) &&
        atomic_exchange_explicit(&line->sleeping, 0, memory_order_acq_rel))
        inv_ring_slot(slot);
}

void shim_ring_all(void)
{
    inv_assert(shim_world.domain_ranks <= INV_MAX_SLOTS);
    for (int i = 0; i < shim_world.domain_ranks; i++)
        if (i != shim_world.me)
            shim_ring_line(shim_world.domain_rank[i].sleep_flag, shim_world.domain_rank[i].slot);
}

/* Yields to rung ranks that are pinned to the caller's core.  Other ranks may wait for what they
 * pass on.  Until they compute again, cores seem to be free, which the caller's next region would
 * take.  Ranks that are not pinned wake up where the kernel puts them. */
static void let_rung_ranks_go_first(void)
{
    if (inv_process.anonymous && inv_thread_pinned())
        sched_yield();
}

void shim_ring_comm(const struct shim_comm *c)
{
    if (!c)
        return;
    bool rings = false;
    for (int r = 0; r < c->peers; r++) {
        int domain_rank = c->domain_rank_of[r];
        inv_assert(domain_rank < shim_world.domain_ranks);
        if (domain_rank == shim_world.me)
            continue;
        /* relaxed: a hint */
        rings |= domain_rank >= 0 &&
                 atomic_load_explicit(&shim_world.domain_rank[domain_rank].sleep_flag->sleeping,
                                      memory_order_relaxed);
        shim_ring(domain_rank);
    }
    if (rings)
        let_rung_ranks_go_first();
}

static bool all_have_arrived(const struct shim_comm *c)
{
    /* acquire: partner is the release store in shim_arrival_begin; orders only the count itself */
    for (int r = 0; r < c->size; r++)
        if ((int64_t)(atomic_load_explicit(&c->line[r].count, memory_order_acquire) - c->arrivals) <
            0)
            return false;
    return true;
}

void shim_ring_all_asleep(const struct shim_comm *c, bool at_arrival)
{
    if (at_arrival && !all_have_arrived(c))
        return;
    inv_assert(c->all_here && c->line); /* each rank is in this domain, and has a line */
    for (int r = 0; r < c->size; r++)
        if (r != c->rank)
            shim_ring_line(&c->line[r], shim_world.domain_rank[c->domain_rank_of[r]].slot);
    if (at_arrival)
        let_rung_ranks_go_first();
}

void shim_ring_set_collect(struct shim_ring_set *set, int count, const MPI_Request *requests)
{
    *set = (struct shim_ring_set){.all = false};
    for (int i = 0; i < count; i++) {
        int domain_rank = shim_request_peer(requests[i]);
        inv_assert(domain_rank < INV_MAX_SLOTS);
        if (domain_rank >= 0)
            set->bits[domain_rank / 64] |= UINT64_C(1) << domain_rank % 64;
        else if (domain_rank == SHIM_DOMAIN_RANK_ALL)
            set->all = true;
    }
}

void shim_ring_set_ring(const struct shim_ring_set *set)
{
    if (set->all) {
        shim_ring(SHIM_DOMAIN_RANK_ALL);
        return;
    }
    for (int i = 0; i < INV_SLOT_WORDS; i++)
        for (uint64_t bits = set->bits[i]; bits; bits &= bits - 1)
            shim_ring(i * 64 + __builtin_ctzll(bits));
}
