/* SPDX-License-Identifier: GPL-3.0-or-later */
/* simulate_heap.h - a binary heap of numbers 0 ... n - 1 with keys that change; the smallest key on
 * top, of equal ones the smaller number. */
#ifndef RMD_SIMULATE_HEAP_H
#define RMD_SIMULATE_HEAP_H

#include "libinvasive/base/assertion.h"

#include <stdbool.h>

struct sim_heap {
    unsigned count;
    unsigned *numbers; /* the heap: `count` numbers */
    int *place;        /* by number: its index in numbers, -1: not in the heap */
    double *key;       /* by number */
};

static inline bool sim_heap_before(const struct sim_heap *h, unsigned a, unsigned b)
{
    return h->key[a] != h->key[b] ? h->key[a] < h->key[b] : a < b;
}

static inline void sim_heap_put(struct sim_heap *h, unsigned at, unsigned number)
{
    h->numbers[at] = number;
    h->place[number] = (int)at;
}

/* Moves the number at index `at` up or down to its place. */
static inline void sim_heap_settle(struct sim_heap *h, unsigned at)
{
    unsigned number = h->numbers[at];
    inv_assert(at < h->count && h->place[number] == (int)at);
    for (; at && sim_heap_before(h, number, h->numbers[(at - 1) / 2]); at = (at - 1) / 2)
        sim_heap_put(h, at, h->numbers[(at - 1) / 2]);
    for (unsigned child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && sim_heap_before(h, h->numbers[child + 1], h->numbers[child]))
            child++;
        if (!sim_heap_before(h, h->numbers[child], number))
            break;
        sim_heap_put(h, at, h->numbers[child]);
    }
    inv_assert(at < h->count);
    sim_heap_put(h, at, number);
}

/* Gives a number this key; adds it if it is not in the heap. */
static inline void sim_heap_set(struct sim_heap *h, unsigned number, double key)
{
    if (h->place[number] >= 0 && h->key[number] == key)
        return;
    h->key[number] = key;
    if (h->place[number] < 0)
        sim_heap_put(h, h->count++, number);
    sim_heap_settle(h, (unsigned)h->place[number]);
}

/* Removes a number, if it is in the heap. */
static inline void sim_heap_drop(struct sim_heap *h, unsigned number)
{
    int at = h->place[number];
    if (at < 0)
        return;
    inv_assert((unsigned)at < h->count && h->numbers[at] == number);
    unsigned last = h->numbers[--h->count];
    h->place[number] = -1;
    if (last == number)
        return;
    sim_heap_put(h, (unsigned)at, last);
    sim_heap_settle(h, (unsigned)at);
}

#endif
