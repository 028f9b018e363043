/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* scalability.c - scalability graphs; see scalability.h. */
#include "libinvasive/table/scalability.h"

#include <math.h>
#include <string.h>

_Static_assert((int)INV_GRAPH_WORDS == (int)INV_SCALABILITY_POINTS, "a word for each point");

unsigned inv_scalability_points(const struct inv_scalability *s)
{
    unsigned n = 0;
    while (n < INV_SCALABILITY_POINTS && s->point[n].cores)
        n++;
    inv_assert(n <= INV_SCALABILITY_POINTS);
    return n;
}

bool inv_scalability_valid(const struct inv_scalability *s)
{
    unsigned last = 0, n = inv_scalability_points(s);
    for (unsigned i = 0; i < n; i++) {
        struct inv_scalability_point p = s->point[i];
        if (p.cores <= last || !isfinite(p.speedup) || p.speedup <= 0)
            return false;
        last = p.cores;
    }
    return true;
}

/* The word of a point in the table. */
static uint64_t word_of(struct inv_scalability_point p)
{
    uint32_t bits;
    memcpy(&bits, &p.speedup, sizeof bits);
    return (uint64_t)p.cores << 32 | bits;
}

bool inv_scalability_is_written(struct inv_slot *slot, const struct inv_scalability *s)
{
    for (unsigned i = 0; i < INV_GRAPH_WORDS; i++) {
        uint64_t word = s->point[i].cores ? word_of(s->point[i]) : 0;
        if (atomic_load_explicit(&slot->scalability[i], memory_order_relaxed) != word)
            return false;
        if (!word)
            return true;
    }
    return true;
}

/* Relaxed, both: the constraint's number orders them (claim.c, rmd/domain/divide.c). */
void inv_scalability_write(struct inv_slot *slot, const struct inv_scalability *s)
{
    unsigned n = inv_scalability_points(s);
    inv_assert(inv_scalability_valid(s) && n <= INV_GRAPH_WORDS);
    for (unsigned i = 0; i < INV_GRAPH_WORDS; i++)
        atomic_store_explicit(&slot->scalability[i], i < n ? word_of(s->point[i]) : 0,
                              memory_order_relaxed);
}

bool inv_scalability_read(struct inv_slot *slot, struct inv_scalability *s)
{
    for (unsigned i = 0; i < INV_GRAPH_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&slot->scalability[i], memory_order_relaxed);
        uint32_t bits = (uint32_t)word;
        s->point[i].cores = (unsigned)(word >> 32);
        memcpy(&s->point[i].speedup, &bits, sizeof bits);
    }
    if (inv_scalability_valid(s))
        return true;
    *s = (struct inv_scalability){0};
    return false;
}
