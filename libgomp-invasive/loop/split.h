/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * split.h - the chunks of a loop in no order (OMP_SCHEDULE=auto, loop_auto.c), claimed without contention.
 *
 * The idea: the chunks 0..n-1 are split into as many contiguous shares as there are cores.
 * A thread claims chunks from the front of its own share; when that is empty it moves
 * the back half of another share into it.  A share is one word, and the word is the
 * whole state of the share: any thread may claim from any share, no thread is waited
 * for, and a thread number that starts late or never leaves nothing behind.
 *
 * All orders are relaxed: a claim hands over numbers, no data.  A chunk is in one word, or
 * claimed, or on its way to the own share of a thread that is still claiming; every
 * change is a compare-and-swap from the value that was looked at, so it is claimed once.
 * The first values are published together with the loop.  Nothing here knows
 * libgomp; test_split_stress.c runs it alone.
 */
#ifndef GOMP_SPLIT_H
#define GOMP_SPLIT_H 1

#include <libinvasive/base/assertion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gomp_share {
    _Atomic uint64_t range; /* end << 32 | next, in chunks; empty when next >= end */
} __attribute__((aligned(64)));

/* Empty, and reserved by a thread that is about to fill it. */
#define GOMP_SHARE_RESERVED UINT64_MAX

static inline uint64_t gomp_share_pack (uint32_t next, uint32_t end)
{
    return (uint64_t)end << 32 | next;
}

static inline uint32_t gomp_share_next (uint64_t range)
{
    return (uint32_t)range;
}

static inline uint32_t gomp_share_end (uint64_t range)
{
    return (uint32_t)(range >> 32);
}

static inline uint32_t gomp_share_left (uint64_t range)
{
    uint32_t next = gomp_share_next(range), end = gomp_share_end(range);
    return next < end ? end - next : 0;
}

/* The chunks 0..chunks-1 in nshares shares that differ by one chunk at most. */
static inline void gomp_split_init (struct gomp_share *shares, unsigned nshares, uint32_t chunks)
{
    inv_assert(nshares > 0);
    uint32_t size = chunks / nshares, longer = chunks % nshares, next = 0;
    for (unsigned i = 0; i < nshares; i++) {
        uint32_t end = next + size + (i < longer);
        atomic_store_explicit(&shares[i].range, gomp_share_pack(next, end),
                              memory_order_relaxed);
        next = end;
    }
    inv_assert(next == chunks); /* each is in one share */
}

/* Claim the first chunk of a share. */
static inline bool gomp_split_own (struct gomp_share *share, uint32_t *chunk)
{
    uint64_t range = atomic_load_explicit(&share->range, memory_order_relaxed);
    do
        if (gomp_share_left(range) == 0)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&share->range, &range, range + 1,
                                                  memory_order_relaxed, memory_order_relaxed));
    *chunk = gomp_share_next(range);
    inv_assert(range != GOMP_SHARE_RESERVED && *chunk < gomp_share_end(range));
    return true;
}

/* Take chunks off the back of a share: half of them, or one.  Returns how many. */
static inline uint32_t gomp_split_cut (struct gomp_share *share, bool half, uint32_t *first)
{
    uint64_t range = atomic_load_explicit(&share->range, memory_order_relaxed);
    uint32_t count, left;
    do {
        if ((left = gomp_share_left(range)) == 0)
            return 0;
        count = half ? (left + 1) / 2 : 1;
        *first = gomp_share_end(range) - count;
        inv_assert(count <= left && *first >= gomp_share_next(range));
    } while (!atomic_compare_exchange_weak_explicit(
        &share->range, &range, gomp_share_pack(gomp_share_next(range), *first),
        memory_order_relaxed, memory_order_relaxed));
    return count;
}

/* Claim a chunk of another share and move more of it into the own one.  Several threads may have the
 * same own share: only the thread that has reserved it fills it, the others claim single chunks. */
static inline bool gomp_split_steal (struct gomp_share *shares, unsigned nshares, unsigned own,
                                     uint32_t *chunk)
{
    inv_assert(own < nshares);
    struct gomp_share *share = &shares[own];
    uint64_t before = atomic_load_explicit(&share->range, memory_order_relaxed);
    bool fill = before != GOMP_SHARE_RESERVED && gomp_share_left(before) == 0 &&
                atomic_compare_exchange_strong_explicit(&share->range, &before,
                                                        GOMP_SHARE_RESERVED,
                                                        memory_order_relaxed,
                                                        memory_order_relaxed);
    uint32_t first = 0, count = 0;
    for (unsigned k = 1, victim = own; k < nshares && count == 0; k++) {
        victim = victim + 1 < nshares ? victim + 1 : 0;
        count = gomp_split_cut(&shares[victim], fill, &first);
    }
    if (fill) /* first + 1, first + count: empty when count is 1 */
        atomic_store_explicit(&share->range,
                              count ? gomp_share_pack(first + 1, first + count) : before,
                              memory_order_relaxed);
    *chunk = first;
    return count > 0;
}
#endif
