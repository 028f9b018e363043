/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * simple-bar.h - what a thread pool keeps for its next region.  Upstream's idle threads wait at a
 * barrier here.  A bound worker waits on a word of its own (bound.h), so the pool only remembers
 * its workers and the region struct that it uses again.
 */
#ifndef GOMP_SIMPLE_BARRIER_H
#define GOMP_SIMPLE_BARRIER_H 1

#include "bar.h"

struct gomp_region;
struct gomp_team;
struct gomp_worker;

typedef struct {
    struct gomp_region *region;   /* open or not, kept for the pool's top-level regions */
    struct gomp_worker **workers; /* workers[i] runs implicit task i of bound regions; [0]
                                     is unused */
    unsigned size;                /* of workers[] */
    struct gomp_worker *idle_nested; /* those of nested teams that have ended */
    unsigned kept; /* free workers that this pool may need again, see gomp_workers_keep */
    struct gomp_team *single; /* the last team of one thread, beside the pool's last_team */
} gomp_simple_barrier_t;
#endif
