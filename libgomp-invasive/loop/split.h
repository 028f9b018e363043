/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * split.h - the chunks of a loop in no order (OMP_SCHEDULE=auto, loop_auto.c), claimed without contention.
 *
 * The idea: the chunks 0..n-1 are split into as many contiguous portions as there are cores.
 * A thread claims chunks from the front of its own portion; when that is empty it moves
 * the back half of another portion into it.  A portion is one word, and the word is the
 * whole state of the portion: any thread may claim from any portion, no thread is waited
 * for, and a thread number that starts late or never leaves nothing behind.
 *
 * All orders are relaxed: a claim hands over numbers, no data.  A chunk is in one word, or
 * claimed, or on its way to the own portion of a thread that is still claiming; every
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

struct gomp_portion {
    _Atomic uint64_t range; /* end << 32 | next, in chunks; empty when next >= end */
} __attribute__((aligned(64)));

/* Empty, and reserved by a thread that is about to fill it. */
#define GOMP_PORTION_RESERVED UINT64_MAX

static inline uint64_t gomp_portion_pack (uint32_t next, uint32_t end)
{
    return (uint64_t)end << 32 | next;
}

static inline uint32_t gomp_portion_next (uint64_t range)
{
    return (uint32_t)range;
}

static inline uint32_t gomp_portion_end (uint64_t range)
{
    return (uint32_t)(range >> 32);
}

static inline uint32_t gomp_portion_left (uint64_t range)
{
    uint32_t next = gomp_portion_next(range), end = gomp_portion_end(range);
    return next < end ? end - next : 0;
}

/* The chunks 0..chunks-1 in nportions portions that differ by one chunk at most. */
static inline void gomp_split_init (struct gomp_portion *portions, unsigned nportions,
                                    uint32_t chunks)
{
    inv_assert(nportions > 0);
    uint32_t size = chunks / nportions, longer = chunks % nportions, next = 0;
    for (unsigned i = 0; i < nportions; i++) {
        uint32_t end = next + size + (i < longer);
        atomic_store_explicit(&portions[i].range, gomp_portion_pack(next, end),
                              memory_order_relaxed);
        next = end;
    }
    inv_assert(next == chunks); /* each is in one portion */
}

/* Claim the first chunk of a portion. */
static inline bool gomp_split_own (struct gomp_portion *portion, uint32_t *chunk)
{
    uint64_t range = atomic_load_explicit(&portion->range, memory_order_relaxed);
    do
        if (gomp_portion_left(range) == 0)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&portion->range, &range, range + 1,
                                                  memory_order_relaxed, memory_order_relaxed));
    *chunk = gomp_portion_next(range);
    inv_assert(range != GOMP_PORTION_RESERVED && *chunk < gomp_portion_end(range));
    return true;
}

/* Take chunks off the back of a portion: half of them, or one.  Returns how many. */
static inline uint32_t gomp_split_cut (struct gomp_portion *portion, bool half, uint32_t *first)
{
    uint64_t range = atomic_load_explicit(&portion->range, memory_order_relaxed);
    uint32_t count, left;
    do {
        if ((left = gomp_portion_left(range)) == 0)
            return 0;
        count = half ? (left + 1) / 2 : 1;
        *first = gomp_portion_end(range) - count;
        inv_assert(count <= left && *first >= gomp_portion_next(range));
    } while (!atomic_compare_exchange_weak_explicit(
        &portion->range, &range, gomp_portion_pack(gomp_portion_next(range), *first),
        memory_order_relaxed, memory_order_relaxed));
    return count;
}

/* Claim a chunk of another portion and move more of it into the own one.  Several threads may
 * have the same own portion: only the thread that has reserved it fills it, the others claim
 * single chunks. */
static inline bool gomp_split_steal (struct gomp_portion *portions, unsigned nportions,
                                     unsigned own, uint32_t *chunk)
{
    inv_assert(own < nportions);
    struct gomp_portion *portion = &portions[own];
    uint64_t before = atomic_load_explicit(&portion->range, memory_order_relaxed);
    bool fill = before != GOMP_PORTION_RESERVED && gomp_portion_left(before) == 0 &&
                atomic_compare_exchange_strong_explicit(&portion->range, &before,
                                                        GOMP_PORTION_RESERVED,
                                                        memory_order_relaxed,
                                                        memory_order_relaxed);
    uint32_t first = 0, count = 0;
    for (unsigned k = 1, victim = own; k < nportions && count == 0; k++) {
        victim = victim + 1 < nportions ? victim + 1 : 0;
        count = gomp_split_cut(&portions[victim], fill, &first);
    }
    if (fill) /* first + 1, first + count: empty when count is 1 */
        atomic_store_explicit(&portion->range,
                              count ? gomp_portion_pack(first + 1, first + count) : before,
                              memory_order_relaxed);
    *chunk = first;
    return count > 0;
}
#endif
