/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop_auto.c - what schedule(runtime) with OMP_SCHEDULE=auto learns of each loop.
 *
 * A loop is known by where it is called from.  At first it is static: each thread number
 * gets one part.  The parts are timed; when the longest made the loop last a tenth longer
 * than it had to, the loop is split from then on: the same parts, in smaller chunks, with
 * stealing (split.h).  When no thread has had to steal for a while it is static again.
 *
 * All of it is a guess: relaxed atomics, and loops that share one entry of the table,
 * or run in two teams at once, only make the guess worse.
 */
#include "loops.h"

enum {
    ENTRIES = 256,
    CALM_EXECUTIONS = 16, /* split executions without a theft until the loop is static again */
    SHORTEST_NS = 5000, /* parts shorter than this are not worth stealing from */
    TOLERATED_PERCENT = 10,
};

/* Writers: threads of teams that run such a loop, by the functions of this file.  relaxed:
 * estimates. */
static struct {
    _Atomic(const void *) site;
    _Atomic bool split, stolen;
    _Atomic unsigned calm;           /* split executions without a theft */
    _Atomic unsigned ended;          /* static parts of this execution */
    _Atomic uint64_t sum_ns, max_ns; /* their times */
} loops[ENTRIES] __attribute__((aligned(64)));

/* 0: the part has begun on another kernel thread. */
static __thread uint64_t part_began_ns;

#define GET(field) atomic_load_explicit(&loops[loop].field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&loops[loop].field, value, memory_order_relaxed)
#define ADD(field, value) atomic_fetch_add_explicit(&loops[loop].field, value, memory_order_relaxed)

unsigned gomp_auto_find (const void *site)
{
    unsigned loop = (unsigned)((uintptr_t)site * UINT64_C(0x9e3779b97f4a7c15) >> 56);
    if (loop == 0)
        loop = 1; /* 0 stands for no loop */
    if (GET(site) != site) {
        SET(site, site);
        SET(split, false);
    }
    return loop;
}

/* A loop from which no thread steals is balanced. */
static void count_calm (unsigned loop)
{
    unsigned calm = GET(stolen) ? 0 : GET(calm) + 1;
    SET(stolen, false);
    SET(calm, calm);
    if (calm >= CALM_EXECUTIONS)
        SET(split, false);
}

bool gomp_auto_splits (unsigned loop)
{
    if (GET(split))
        count_calm(loop);
    SET(ended, 0);
    SET(sum_ns, 0);
    SET(max_ns, 0);
    return GET(split);
}

void gomp_auto_part_begin (unsigned loop)
{
    (void)loop;
    part_began_ns = inv_now_ns();
}

/* Did the longest part make the loop last longer than it had to? */
static bool imbalanced (unsigned loop, unsigned nthreads)
{
    uint64_t cores = nthreads < gomp_available_cpus ? nthreads : gomp_available_cpus;
    uint64_t ideal = GET(sum_ns) / cores, longest = GET(max_ns);
    /* More parts than cores: the last one to start ends half its length late. */
    uint64_t span = nthreads <= cores ? longest : ideal + longest / 2;
    return longest >= SHORTEST_NS && span * 100 > ideal * (100 + TOLERATED_PERCENT);
}

void gomp_auto_part_end (unsigned loop, unsigned nthreads)
{
    if (part_began_ns == 0)
        return;
    uint64_t ns = inv_now_ns() - part_began_ns, max = GET(max_ns);
    ADD(sum_ns, ns);
    while (ns > max && !atomic_compare_exchange_weak_explicit(&loops[loop].max_ns, &max, ns,
                                                              memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
    if (ADD(ended, 1) + 1 != nthreads || !imbalanced(loop, nthreads))
        return;
    SET(calm, 0);
    SET(stolen, false);
    SET(split, true);
}

void gomp_auto_stole (unsigned loop)
{
    if (!GET(stolen))
        SET(stolen, true);
}
