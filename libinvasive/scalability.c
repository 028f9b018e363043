/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* scalability.c - scalability graphs; see scalability.h. */
#include "scalability.h"

#include <math.h>
#include <string.h>

_Static_assert((int)INV_GRAPH_WORDS == (int)INV_SCALABILITY_POINTS, "a word for each point");

unsigned inv_scalability_points(const struct inv_scalability *s)
{
    unsigned n = 0;
    while (n < INV_SCALABILITY_POINTS && s->point[n].cores)
        n++;
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

bool inv_scalability_equal(const struct inv_scalability *a, const struct inv_scalability *b)
{
    unsigned n = inv_scalability_points(a);
    if (n != inv_scalability_points(b))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (a->point[i].cores != b->point[i].cores || a->point[i].speedup != b->point[i].speedup)
            return false;
    return true;
}

/* Relaxed, both: the constraint's number orders them (claim.c, rmd/domain.c). */
void inv_scalability_write(struct inv_slot *slot, const struct inv_scalability *s)
{
    unsigned n = inv_scalability_points(s);
    for (unsigned i = 0; i < INV_GRAPH_WORDS; i++) {
        uint32_t bits;
        memcpy(&bits, &s->point[i].speedup, sizeof bits);
        uint64_t word = i < n ? (uint64_t)s->point[i].cores << 32 | bits : 0;
        atomic_store_explicit(&slot->scalability[i], word, memory_order_relaxed);
    }
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
