/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskpool.c - free lists of tasks (taskpool.h).  Needs nothing of libgomp, so that it can be
 * tested alone.
 */
#include "taskpool.h"
#include <libinvasive/base/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 64 };

const unsigned short gomp_pool_size[GOMP_POOL_CLASSES] = GOMP_POOL_SIZES;
#undef gomp_own_pool
__thread struct gomp_pool *gomp_own_pool;
#define gomp_own_pool GOMP_OWN(gomp_own_pool)

/* Batches of free blocks, and what is left of the chunk that new blocks are cut from.  Writers: any
 * thread that makes or frees a task, under lock, which is held for a few instructions. */
static struct {
    _Atomic int lock;
    struct gomp_pool_block *batches[GOMP_POOL_CLASSES];
    char *chunk, *chunk_end;
} common;

static void lock_common (void)
{
    while (atomic_exchange_explicit(&common.lock, 1, memory_order_acquire))
        while (atomic_load_explicit(&common.lock, memory_order_relaxed))
            inv_kernel_yield();
}

static void unlock_common (void)
{
    atomic_store_explicit(&common.lock, 0, memory_order_release);
}

static void *allocate (size_t bytes)
{
    void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        fprintf(stderr, "\nlibgomp: Out of memory allocating %lu bytes for tasks\n",
                (unsigned long)bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static struct gomp_pool *own_pool (void)
{
    if (!gomp_own_pool) {
        gomp_own_pool = allocate(sizeof *gomp_own_pool);
        memset(gomp_own_pool, 0, sizeof *gomp_own_pool);
    }
    return gomp_own_pool;
}

/* A batch of new blocks, linked; with the lock held. */
static struct gomp_pool_block *cut_batch (int class)
{
    struct gomp_pool_block *first = NULL;
    size_t bytes = gomp_pool_size[class];
    if ((size_t)(common.chunk_end - common.chunk) < GOMP_POOL_BATCH * bytes) {
        common.chunk = allocate(CHUNK_BYTES); /* what is left of the last one is small: lost */
        common.chunk_end = common.chunk + CHUNK_BYTES;
    }
    for (int i = 0; i < GOMP_POOL_BATCH; i++, common.chunk += bytes) {
        memset(common.chunk, 0, bytes);
        struct gomp_pool_block *link = gomp_pool_link(common.chunk, class);
        link->next = first;
        first = link;
    }
    inv_assert(common.chunk <= common.chunk_end);
    first->count = GOMP_POOL_BATCH;
    return first;
}

void *gomp_pool_refill (int class)
{
    struct gomp_pool *pool = own_pool();
    if (!pool->list[class].first) {
        lock_common();
        struct gomp_pool_block *batch = common.batches[class];
        if (batch)
            common.batches[class] = batch->batch;
        else
            batch = cut_batch(class);
        unlock_common();
        pool->list[class].first = batch;
        pool->list[class].count = batch->count;
        inv_assert(batch->count > 0);
    }
    return gomp_pool_alloc(class);
}

static void give_batch (int class, struct gomp_pool_block *batch, unsigned count)
{
    inv_assert(count > 0 && class >= 0 && class < GOMP_POOL_CLASSES);
    batch->count = count;
    lock_common();
    batch->batch = common.batches[class];
    common.batches[class] = batch;
    unlock_common();
}

/* Take one batch off the calling thread's list, which has more. */
static struct gomp_pool_block *split_batch (struct gomp_pool *pool, int class)
{
    struct gomp_pool_block *batch = pool->list[class].first, *last = batch;
    for (int i = 1; i < GOMP_POOL_BATCH; i++)
        last = last->next;
    inv_assert(pool->list[class].count > GOMP_POOL_BATCH && last->next != NULL);
    pool->list[class].first = last->next;
    pool->list[class].count -= GOMP_POOL_BATCH;
    last->next = NULL;
    return batch;
}

void gomp_pool_overflow (int class, void *block)
{
    struct gomp_pool *pool = own_pool();
    if (pool->list[class].count >= 2 * GOMP_POOL_BATCH)
        give_batch(class, split_batch(pool, class), GOMP_POOL_BATCH);
    gomp_pool_free(class, block);
}

void gomp_pool_donate (void)
{
    struct gomp_pool *pool = gomp_own_pool;
    if (!pool)
        return;
    for (int class = 0; class < GOMP_POOL_CLASSES; class++)
        if (pool->list[class].first)
            give_batch(class, pool->list[class].first, pool->list[class].count);
    gomp_own_pool = NULL;
    free(pool);
}

void gomp_pools_forget (void)
{
    /* The lock may have been held, and the lists half changed, by threads that are not here. */
    memset(&common, 0, sizeof common);
}
