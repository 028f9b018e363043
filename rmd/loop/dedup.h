/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dedup.h - deduplication of messages that the processes of a launch print: INV_SAY asks whether
 * one of them has printed this message already.
 *
 * A number that the processes choose stands for the message (libinvasive/launch/preload.c).  The last ones
 * are remembered.
 */
#ifndef RMD_DEDUP_H
#define RMD_DEDUP_H

#include "libinvasive/base/assertion.h"

#include <stdbool.h>
#include <stdint.h>

/* More messages than a launch has, and few enough to compare with all. */
enum { RMD_DEDUP_NUMBERS = 64 };

struct rmd_dedup {
    uint64_t seen[RMD_DEDUP_NUMBERS];
    unsigned count; /* so far; the next one replaces seen[count % RMD_DEDUP_NUMBERS] */
};

/* Remembers `number`.  False: it was known already. */
static inline bool rmd_dedup_first(struct rmd_dedup *dedup, uint64_t number)
{
    unsigned known = dedup->count < RMD_DEDUP_NUMBERS ? dedup->count : RMD_DEDUP_NUMBERS;
    inv_assert(known <= RMD_DEDUP_NUMBERS);
    for (unsigned i = 0; i < known; i++)
        if (dedup->seen[i] == number)
            return false;
    dedup->seen[dedup->count++ % RMD_DEDUP_NUMBERS] = number;
    return true;
}

#endif
