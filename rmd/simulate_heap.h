/* SPDX-License-Identifier: GPL-3.0-or-later */
/* simulate_heap.h - a binary heap of numbers 0 ... n - 1 with keys that change; the smallest key on
 * top, of equal ones the smaller number. */
#ifndef RMD_SIMULATE_HEAP_H
#define RMD_SIMULATE_HEAP_H

#include <stdbool.h>

struct sim_heap {
    unsigned count;
    unsigned *who; /* count of them */
    int *place;    /* by number: in who, -1 not there */
    double *key;   /* by number */
};

static inline bool sim_heap_before(const struct sim_heap *h, unsigned a, unsigned b)
{
    return h->key[a] != h->key[b] ? h->key[a] < h->key[b] : a < b;
}

static inline void sim_heap_put(struct sim_heap *h, unsigned at, unsigned who)
{
    h->who[at] = who;
    h->place[who] = (int)at;
}

/* Up or down from where it is. */
static inline void sim_heap_settle(struct sim_heap *h, unsigned at)
{
    unsigned who = h->who[at];
    for (; at && sim_heap_before(h, who, h->who[(at - 1) / 2]); at = (at - 1) / 2)
        sim_heap_put(h, at, h->who[(at - 1) / 2]);
    for (unsigned child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && sim_heap_before(h, h->who[child + 1], h->who[child]))
            child++;
        if (!sim_heap_before(h, h->who[child], who))
            break;
        sim_heap_put(h, at, h->who[child]);
    }
    sim_heap_put(h, at, who);
}

static inline void sim_heap_set(struct sim_heap *h, unsigned who, double key)
{
    if (h->place[who] >= 0 && h->key[who] == key)
        return;
    h->key[who] = key;
    if (h->place[who] < 0)
        sim_heap_put(h, h->count++, who);
    sim_heap_settle(h, (unsigned)h->place[who]);
}

static inline void sim_heap_drop(struct sim_heap *h, unsigned who)
{
    int at = h->place[who];
    if (at < 0)
        return;
    unsigned last = h->who[--h->count];
    h->place[who] = -1;
    if (last == who)
        return;
    sim_heap_put(h, (unsigned)at, last);
    sim_heap_settle(h, (unsigned)at);
}

#endif
