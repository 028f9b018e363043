/* SPDX-License-Identifier: GPL-3.0-or-later */
/* heap.h - a binary heap of numbered things, the largest key on top; of equal keys the
 * preferred, then the one with the smaller number. */
#ifndef RMD_HEAP_H
#define RMD_HEAP_H

#include "libinvasive/base/assertion.h"

#include <stdbool.h>

struct rmd_heap_item {
    double key;
    unsigned number;
    bool preferred;
};

/* Without a branch: no processor predicts which of two children has the larger key. */
static inline bool rmd_heap_before(const struct rmd_heap_item *a, const struct rmd_heap_item *b)
{
    bool first =
        (a->preferred > b->preferred) | ((a->preferred == b->preferred) & (a->number < b->number));
    return (a->key > b->key) | ((a->key == b->key) & first);
}

static inline void rmd_heap_sink(struct rmd_heap_item *heap, unsigned n, unsigned at)
{
    inv_assert(at < n);
    struct rmd_heap_item item = heap[at];
    for (unsigned child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n)
            child += rmd_heap_before(&heap[child + 1], &heap[child]);
        if (!rmd_heap_before(&heap[child], &item))
            break;
        heap[at] = heap[child];
    }
    inv_assert(2 * at + 1 >= n || !rmd_heap_before(&heap[2 * at + 1], &item));
    inv_assert(2 * at + 2 >= n || !rmd_heap_before(&heap[2 * at + 2], &item));
    heap[at] = item;
}

static inline void rmd_heap_make(struct rmd_heap_item *heap, unsigned n)
{
    for (unsigned at = n / 2; at-- > 0;)
        rmd_heap_sink(heap, n, at);
}

static inline void rmd_heap_push(struct rmd_heap_item *heap, unsigned *n, struct rmd_heap_item item)
{
    unsigned at = (*n)++;
    for (; at && rmd_heap_before(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    inv_assert(at < *n && (at == 0 || !rmd_heap_before(&item, &heap[(at - 1) / 2])));
    heap[at] = item;
}

/* *n > 0 */
static inline struct rmd_heap_item rmd_heap_pop(struct rmd_heap_item *heap, unsigned *n)
{
    inv_assert(*n > 0);
    struct rmd_heap_item top = heap[0];
    heap[0] = heap[--*n];
    if (*n)
        rmd_heap_sink(heap, *n, 0);
    return top;
}

#endif
