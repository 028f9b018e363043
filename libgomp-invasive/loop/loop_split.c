/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop_split.c - work shares whose chunks are split (split.h): setting one up, and what a
 * thread does when its own portion is empty.
 */
#include "loops.h"

/* More portions than this gain nothing and cost their first thread time. */
enum { MAX_PORTIONS = 256 };

/* A portion for each core that may come to compute here, not for each thread number: implicit
 * tasks may be many more than cores, and then run one after another. */
static unsigned portions_for (const struct gomp_team *team)
{
    unsigned long n = team->nthreads;
    if (n > gomp_available_cpus)
        n = gomp_available_cpus;
    return n < MAX_PORTIONS ? (unsigned)n : MAX_PORTIONS;
}

bool gomp_loop_split (struct gomp_work_share *ws, struct gomp_team *team,
                      unsigned long long chunks)
{
    if (team == NULL || chunks >= UINT32_MAX)
        return false;
    unsigned n = portions_for(team);
    if (n < 2 || chunks < n * (unsigned long long)LOOP_CHUNKS_PER_PORTION)
        return false;
    ws->ordered_team_ids = team_malloc((n + 2) * sizeof(struct gomp_portion)); /* 1: alignment */
    ws->loop_nportions = n;
    ws->loop_nchunks = (unsigned)chunks;
    ws->loop_auto = 0;
    struct gomp_portion *portions = gomp_loop_portions(ws);
    uint32_t last = (uint32_t)chunks - 1;
    gomp_split_init(portions, n, last);
    atomic_store_explicit(&portions[n].range, gomp_portion_pack(last, last + 1),
                          memory_order_relaxed);
    return true;
}

/* The portion of the thread's core, so that the next loop over the same data finds it in the same
 * cache, whichever thread number runs there.  Without a core: that of the thread number. */
unsigned gomp_loop_own (const struct gomp_work_share *ws)
{
    unsigned who = inv_hold >= 0 ? (unsigned)inv_hold : gomp_thread()->ts.team_id;
    return who % ws->loop_nportions;
}

/* The last chunk is in a portion of its own, which is no thread's own until all others are empty:
 * compiled code stores lastprivate variables after the last chunk that its thread was
 * given, if that ends the loop.  The thread that has claimed it gets no further chunk. */
bool gomp_loop_steal (struct gomp_work_share *ws, unsigned own, uint32_t *chunk)
{
    struct gomp_portion *portions = gomp_loop_portions(ws);
    unsigned n = ws->loop_nportions;
    if (own == n)
        return false;
    if (gomp_split_steal(portions, n, own, chunk)) {
        if (ws->loop_auto)
            gomp_auto_stole(ws->loop_auto);
        return true;
    }
    if (!gomp_split_own(&portions[n], chunk))
        return false;
    gomp_thread()->ts.static_trip = n + 1UL;
    return true;
}
