/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskpool.h - memory for tasks and what hangs on them.
 *
 * Each kernel thread has free lists by size, without locks.  A block goes to the list of the thread
 * that frees it; a list that grows long gives a batch to a common stack, an empty one takes a batch
 * from there: so blocks that one thread allocates and another frees go round in batches.
 * Memory is never returned to malloc: a thief may look at a task that has just ended (its answer is
 * then thrown away), so the memory must stay what it is, a block of its class.
 */
#ifndef GOMP_TASKPOOL_H
#define GOMP_TASKPOOL_H 1

#include "own.h"
#include <libinvasive/base/assertion.h>
#include <stddef.h>
#include <stdint.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* Sizes in bytes of the classes; multiples of 64, to which blocks are aligned. */
enum { GOMP_POOL_CLASSES = 5 };
#define GOMP_POOL_SIZES {128, 384, 512, 768, 1536}

extern const unsigned short gomp_pool_size[GOMP_POOL_CLASSES];

struct gomp_pool_block {
    struct gomp_pool_block *next;  /* in its list */
    struct gomp_pool_block *batch; /* in the common stack: the next batch, */
    unsigned count;                /* and how many blocks this one has */
};

struct gomp_pool {
    struct {
        struct gomp_pool_block *first;
        unsigned count;
    } list[GOMP_POOL_CLASSES];
};

/* Of the calling thread; made when it first allocates or frees. */
extern __thread struct gomp_pool *gomp_own_pool __attribute__((tls_model("initial-exec")));
#define gomp_own_pool GOMP_OWN(gomp_own_pool)

/* The smallest class for so many bytes, or -1: larger than any. */
static inline int gomp_pool_class (size_t bytes)
{
    for (int class = 0; class < GOMP_POOL_CLASSES; class++)
        if (bytes <= gomp_pool_size[class])
            return class;
    return -1;
}

/* Never fails: ends the program when there is no memory. */
extern void *gomp_pool_refill (int class);
extern void gomp_pool_overflow (int class, void *block);

enum { GOMP_POOL_BATCH = 32 };

/* The link of a free block is at its end: its beginning is what thieves look at. */
static inline struct gomp_pool_block *gomp_pool_link (void *block, int class)
{
    return (struct gomp_pool_block *)((char *)block + gomp_pool_size[class]) - 1;
}

static inline void *gomp_pool_alloc (int class)
{
    struct gomp_pool *pool = gomp_own_pool;
    if (__builtin_expect(!pool || !pool->list[class].first, 0))
        return gomp_pool_refill(class);
    struct gomp_pool_block *link = pool->list[class].first;
    inv_assert(class >= 0 && class < GOMP_POOL_CLASSES && pool->list[class].count > 0);
    pool->list[class].first = link->next;
    pool->list[class].count--;
    return (char *)(link + 1) - gomp_pool_size[class];
}

static inline void gomp_pool_free (int class, void *block)
{
    struct gomp_pool *pool = gomp_own_pool;
    if (__builtin_expect(!pool || pool->list[class].count >= 2 * GOMP_POOL_BATCH, 0)) {
        gomp_pool_overflow(class, block);
        return;
    }
    struct gomp_pool_block *link = gomp_pool_link(block, class);
    inv_assert(link != pool->list[class].first); /* the block is not free already */
    link->next = pool->list[class].first;
    pool->list[class].first = link;
    pool->list[class].count++;
}

/* The calling thread ends: other threads may have its free blocks. */
extern void gomp_pool_donate (void);
/* For the child of a fork. */
extern void gomp_pools_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
