/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ring.c - waking the members that sleep in a wait that we may have ended.
 *
 * A ring costs the woken process a turn on its core, so it goes only to those who said
 * that they sleep, only from calls that post or complete something, and only once per
 * sleep: the flag is claimed.  A sleeper sets its flag, looks once more, and sleeps a
 * short slice first; a ring that its flag came too late for is therefore made up for by
 * that slice's end, and the posting side needs no fence.
 */
#include "shim.h"

enum { NOTES = 4096 }; /* power of two */

/* A request's handle in the low half, member + 3 in the high half.  Only MPICH's integer
 * handles fit; relaxed: a hint, and one word. */
static _Atomic uint64_t notes[NOTES];

static _Atomic uint64_t *note_of(MPI_Request request)
{
    return &notes[((uint32_t)request * UINT32_C(0x9e3779b9)) >> 20];
}

void shim_request_note(MPI_Request request, int member)
{
    uint64_t word = (uint32_t)request | (uint64_t)(uint32_t)(member + 3) << 32;
    atomic_store_explicit(note_of(request), word, memory_order_relaxed);
}

int shim_request_member(MPI_Request request)
{
    uint64_t word = atomic_load_explicit(note_of(request), memory_order_relaxed);
    int member = (int)(word >> 32) - 3;
    return (uint32_t)word == (uint32_t)request && member < shim_world.members ? member
                                                                              : SHIM_MEMBER_NONE;
}

static inline void ring_line(struct inv_board_line *line, unsigned slot)
{
    /* acquire: partner is the sleeper's store in wait.c; a hint, see the top */
    if (atomic_load_explicit(&line->sleeping, memory_order_acquire) &&
        atomic_exchange_explicit(&line->sleeping, 0, memory_order_acq_rel))
        inv_ring_slot(slot);
}

void shim_ring_member(int member)
{
    if (member >= 0) {
        ring_line(shim_world.member[member].mail, shim_world.member[member].slot);
    } else if (member == SHIM_MEMBER_ALL) {
        for (int i = 0; i < shim_world.members; i++)
            if (i != shim_world.me)
                ring_line(shim_world.member[i].mail, shim_world.member[i].slot);
    }
}

void shim_ring_comm(const struct shim_comm *c)
{
    if (!c)
        return;
    for (int r = 0; r < c->peers; r++)
        if (c->member_of[r] != shim_world.me)
            shim_ring_member(c->member_of[r]);
}

void shim_ring_set_collect(struct shim_ring_set *set, int count, const MPI_Request *requests)
{
    *set = (struct shim_ring_set){.all = false};
    for (int i = 0; i < count; i++) {
        int member = shim_request_member(requests[i]);
        if (member >= 0)
            set->bits[member / 64] |= UINT64_C(1) << member % 64;
        else if (member == SHIM_MEMBER_ALL)
            set->all = true;
    }
}

void shim_ring_set_ring(const struct shim_ring_set *set)
{
    if (set->all) {
        shim_ring_member(SHIM_MEMBER_ALL);
        return;
    }
    for (int i = 0; i < INV_MAX_SLOTS / 64; i++)
        for (uint64_t bits = set->bits[i]; bits; bits &= bits - 1)
            shim_ring_member(i * 64 + __builtin_ctzll(bits));
}
