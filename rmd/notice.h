/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * notice.h - what the processes of a launch say once: INV_SAY asks whether it has been said.
 *
 * The last ones are remembered by a number that the processes choose (libinvasive/preload.c).
 */
#ifndef RMD_NOTICE_H
#define RMD_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

enum { RMD_NOTICES = 64 }; /* more kinds than a launch has, and few enough to compare them all */

struct rmd_notices {
    uint64_t said[RMD_NOTICES];
    unsigned count; /* so far; the next one replaces said[count % RMD_NOTICES] */
};

/* Remembers `number`.  False: it was known already. */
static inline bool rmd_notice_first(struct rmd_notices *notices, uint64_t number)
{
    unsigned known = notices->count < RMD_NOTICES ? notices->count : RMD_NOTICES;
    for (unsigned i = 0; i < known; i++)
        if (notices->said[i] == number)
            return false;
    notices->said[notices->count++ % RMD_NOTICES] = number;
    return true;
}

#endif
