/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * guest.h - a thread that was evicted from a core computes there again while the owner waits.
 *
 * Who evicts a thread keeps it off the core.  In a long implicit task that thread does not notice
 * before its next scheduling point: it shares another core meanwhile, and asks for none.  When the
 * owner waits again and nobody takes the core, as in a loop of tests, it would be idle.  So it is
 * lent to that thread without a word: the core is nobody's in the table, and only the thread's
 * affinity lets it in, until the owner is back.
 *
 * A guest belongs to the waiting thread that evicted it, and is used by that thread alone.
 */
#ifndef INV_GUEST_H
#define INV_GUEST_H

#include "prompt.h"

#include <stdbool.h>
#include <stdint.h>

struct inv_guest {
    int32_t tid; /* 0: none */
    int32_t pid; /* of its process, so that a number that is used again is told */
    int core;    /* that it was evicted from */
    bool binds;  /* its process binds its threads */
    bool in;     /* its affinity lets it in */
    struct inv_prompt prompt; /* of the waiting thread, which wakes beside it */
};

/* The thread that computed on the core has been evicted, which its slot says. */
void inv_guest_evicted(struct inv_guest *g, int core, unsigned slot);
/* The caller has given the core up, and may have found somebody for it. */
void inv_guest_invite(struct inv_guest *g, int core);
/* The caller waits no more, and has this core. */
void inv_guest_dismiss(struct inv_guest *g, int core);

#endif
