/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bins.h - bins by their free space, for best-fit packing: finds the bin with the least sufficient
 * space, and the one with the most.  There is a list of bins for each amount of space, and a tree
 * of bitmaps over the amounts, in which the next list that is not empty is found in a few steps.
 */
#ifndef RMD_BINS_H
#define RMD_BINS_H

#include "libinvasive/base/assertion.h"

#include <stddef.h>
#include <stdint.h>

enum { RMD_BINS_DEPTH = 4, RMD_NO_BIN = -1 }; /* 64^4 cores */

struct rmd_bins {
    uint64_t *bits[RMD_BINS_DEPTH]; /* [0]: amounts that a bin has; [k]: words of [k - 1] that are
                                       not 0 */
    size_t words[RMD_BINS_DEPTH];   /* of each bitmap; the last one is one word */
    unsigned depth;                 /* number of bitmaps in use, see rmd_bins_begin */
    int *head;                      /* by space: a bin, or RMD_NO_BIN */
    int *next, *prev;               /* by bin */
    unsigned *space;                /* by bin; its owner sets it before rmd_bins_add */
};

/* Begins with no bins.  No bin may have more space than `most`. */
static inline void rmd_bins_begin(struct rmd_bins *b, unsigned most)
{
    b->depth = 1;
    while (b->depth < RMD_BINS_DEPTH && (most /= 64) > 0)
        b->depth++;
}

static inline void rmd_bins_add(struct rmd_bins *b, int bin)
{
    unsigned at = b->space[bin];
    inv_assert(at > 0 && at / 64 < b->words[0]);
    b->next[bin] = b->head[at];
    b->prev[bin] = RMD_NO_BIN;
    if (b->head[at] != RMD_NO_BIN)
        b->prev[b->head[at]] = bin;
    b->head[at] = bin;
    for (unsigned k = 0; k < b->depth; k++, at /= 64)
        b->bits[k][at / 64] |= UINT64_C(1) << at % 64;
}

static inline void rmd_bins_drop(struct rmd_bins *b, int bin)
{
    unsigned at = b->space[bin];
    inv_assert(b->prev[bin] != RMD_NO_BIN || b->head[at] == bin); /* it is in its list */
    if (b->next[bin] != RMD_NO_BIN)
        b->prev[b->next[bin]] = b->prev[bin];
    if (b->prev[bin] != RMD_NO_BIN)
        b->next[b->prev[bin]] = b->next[bin];
    else
        b->head[at] = b->next[bin];
    if (b->head[at] != RMD_NO_BIN)
        return;
    for (unsigned k = 0; k < b->depth; k++, at /= 64)
        if (b->bits[k][at / 64] &= ~(UINT64_C(1) << at % 64))
            return;
}

/* Uses `amount` of the bin's space. */
static inline void rmd_bins_use(struct rmd_bins *b, int bin, unsigned amount)
{
    inv_assert(amount > 0 && amount <= b->space[bin]);
    rmd_bins_drop(b, bin);
    b->space[bin] -= amount;
    if (b->space[bin])
        rmd_bins_add(b, bin);
}

/* The bin with the least space of at least `need` (< 64^4); RMD_NO_BIN: none has so much. */
static inline int rmd_bins_best(const struct rmd_bins *b, unsigned need)
{
    unsigned at = need;
    for (unsigned k = 0; k < b->depth; k++, at = at / 64 + 1) {
        /* from `at` on in its word; the words after it are the next level's matter */
        uint64_t word = at / 64 < b->words[k] ? b->bits[k][at / 64] >> at % 64 : 0;
        if (!word)
            continue;
        at += (unsigned)__builtin_ctzll(word);
        while (k--)
            at = at * 64 + (unsigned)__builtin_ctzll(b->bits[k][at]);
        inv_assert(at >= need && b->head[at] != RMD_NO_BIN);
        return b->head[at];
    }
    return RMD_NO_BIN;
}

/* The bin with the most space; RMD_NO_BIN: none has any. */
static inline int rmd_bins_largest(const struct rmd_bins *b)
{
    unsigned at = 0;
    if (!b->bits[b->depth - 1][0])
        return RMD_NO_BIN;
    for (unsigned k = b->depth; k--;)
        at = at * 64 + 63 - (unsigned)__builtin_clzll(b->bits[k][at]);
    inv_assert(b->head[at] != RMD_NO_BIN);
    return b->head[at];
}

#endif
