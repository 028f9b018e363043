/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskqueue.c - the rings behind the deque of tasks (taskqueue.h).  Needs nothing of libgomp, so
 * that it can be tested alone.
 */
#include "taskqueue.h"
#include <stdlib.h>

static struct gomp_queue_ring *ring_alloc (int64_t entries, struct gomp_queue_ring *former)
{
    struct gomp_queue_ring *ring =
        malloc(sizeof *ring + (size_t)entries * sizeof ring->entry[0]);
    if (ring) {
        ring->mask = entries - 1;
        ring->former = former;
    }
    return ring;
}

bool gomp_queue_init (struct gomp_queue *q)
{
    atomic_init(&q->top, 0);
    atomic_init(&q->bottom, 0);
    atomic_init(&q->ring, ring_alloc(GOMP_QUEUE_FIRST, NULL));
    return atomic_load_explicit(&q->ring, memory_order_relaxed) != NULL;
}

void gomp_queue_free (struct gomp_queue *q)
{
    struct gomp_queue_ring *former, *ring = atomic_load_explicit(&q->ring, memory_order_relaxed);
    for (; ring; ring = former) {
        former = ring->former;
        free(ring);
    }
}

bool gomp_queue_grow (struct gomp_queue *q)
{
    struct gomp_queue_ring *old = atomic_load_explicit(&q->ring, memory_order_relaxed);
    int64_t entries = 2 * (old->mask + 1);
    inv_assert((old->mask & (old->mask + 1)) == 0 && old->mask < GOMP_QUEUE_MAX);
    struct gomp_queue_ring *ring;
    if (entries > GOMP_QUEUE_MAX || !(ring = ring_alloc(entries, old)))
        return false;
    int64_t b = atomic_load_explicit(&q->bottom, memory_order_relaxed);
    inv_assert(b - atomic_load_explicit(&q->top, memory_order_acquire) < entries);
    for (int64_t i = atomic_load_explicit(&q->top, memory_order_acquire); i < b; i++)
        atomic_store_explicit(
            &ring->entry[i & ring->mask],
            atomic_load_explicit(&old->entry[i & old->mask], memory_order_relaxed),
            memory_order_relaxed);
    atomic_store_explicit(&q->ring, ring, memory_order_release);
    return true;
}
