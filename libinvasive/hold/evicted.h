/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * evicted.h - a thread that was evicted from a core computes there again while the owner waits.
 *
 * The owner keeps an evicted thread off the core.  In a long implicit task that thread does not notice
 * before its next scheduling point: it shares another core meanwhile, and asks for none.  When the
 * owner waits again and no process takes the core, as in a loop of tests, the core would be idle.  So
 * the owner lets the evicted thread in without lending: the core has no holder in the table, and only
 * the thread's affinity admits it, until the owner is back.
 *
 * An inv_evicted belongs to the waiting thread that evicted the other one, and only that thread uses it.
 */
#ifndef INV_EVICTED_H
#define INV_EVICTED_H

#include "libinvasive/process/sched_latency.h"

#include <stdbool.h>
#include <stdint.h>

struct inv_evicted {
    int32_t tid;   /* 0: none */
    int32_t pid;   /* of its process: shows that a tid is used again */
    int core;      /* that it was evicted from */
    bool pins;     /* its process pins its threads */
    bool admitted; /* its affinity lets it in */
    struct inv_sched_latency latency; /* of the waiting thread, which wakes beside it */
};

/* The thread that computed on `core` has been evicted.  slot: its process. */
void inv_evicted_note(struct inv_evicted *e, int core, unsigned slot);
/* The caller has given `core` up: admits the evicted thread, if no process holds the core. */
void inv_evicted_admit(struct inv_evicted *e, int core);
/* The caller waits no more, and holds `core`: removes the evicted thread from it. */
void inv_evicted_remove(struct inv_evicted *e, int core);

#endif
