/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ordered.c - loops with ordered regions: whose turn it is.  Replaces upstream's functions for
 * that; its doacross loops stay.
 *
 * The idea: a token goes round a ring of N slots, one for each thread of the team.  The
 * chunks of a loop, in the order of their iterations, belong to slots 0, 1 ... N-1, 0 ...
 * A thread has one chunk at a time and begins no other before its turn is over, so no two
 * threads have the same slot, and a thread waits on a word that only the one before it
 * writes.  Nobody needs to know who comes next.
 *
 * Slots are the ints behind ws->ordered_team_ids, which upstream allocates, clears and frees.
 * The token comes to a slot by a change of its value: to 1 in the first round, to 0 in the
 * second, and so on.  So passing it is one store.
 */
#include "wait.h"
#include "loops.h"

#define gomp_ordered_first upstream_ordered_first
#define gomp_ordered_last upstream_ordered_last
#define gomp_ordered_next upstream_ordered_next
#define gomp_ordered_static_init upstream_ordered_static_init
#define gomp_ordered_static_next upstream_ordered_static_next
#define gomp_ordered_sync upstream_ordered_sync
#define GOMP_ordered_start upstream_GOMP_ordered_start
#define UPSTREAM_UNUSED static void __attribute__((unused))
UPSTREAM_UNUSED upstream_ordered_first (void);
UPSTREAM_UNUSED upstream_ordered_last (void);
UPSTREAM_UNUSED upstream_ordered_next (void);
UPSTREAM_UNUSED upstream_ordered_static_init (void);
UPSTREAM_UNUSED upstream_ordered_static_next (void);
UPSTREAM_UNUSED upstream_ordered_sync (void);
UPSTREAM_UNUSED upstream_GOMP_ordered_start (void);
#include <../libgomp/ordered.c>
#undef gomp_ordered_first
#undef gomp_ordered_last
#undef gomp_ordered_next
#undef gomp_ordered_static_init
#undef gomp_ordered_static_next
#undef gomp_ordered_sync
#undef GOMP_ordered_start

/* Is there an order to keep?  Not in a team of one. */
static inline bool has_order (const struct gomp_team *team)
{
    return team != NULL && team->nthreads > 1;
}

/* The turn of the chunk that a thread has. */
struct turn {
    unsigned slot, round;
};

/* Static loops: chunk k belongs to thread number k mod N, so that is its slot, and
 * static_trip is how many chunks the thread has been given. */
static inline struct turn own_turn (const struct gomp_thread *thr)
{
    const struct gomp_work_share *ws = thr->ts.work_share;
    unsigned long trip = thr->ts.static_trip;
    if (ws->sched == GFS_STATIC || ws->sched == GFS_AUTO)
        return (struct turn){thr->ts.team_id, (unsigned)trip - 1};
    return (struct turn){(unsigned)trip, (unsigned)(trip >> 32)};
}

static inline struct turn after (struct turn t, const struct gomp_team *team)
{
    return t.slot + 1 < team->nthreads ? (struct turn){t.slot + 1, t.round}
                                       : (struct turn){0, t.round + 1};
}

static inline int token_in (unsigned round)
{
    return (round & 1) == 0;
}

/* This chunk is done: it is the turn of the next one. */
static void pass_token (struct gomp_thread *thr)
{
    struct turn next = after(own_turn(thr), thr->ts.team);
    int *slot = (int *)&thr->ts.work_share->ordered_team_ids[next.slot];
    /* release: partner is gomp_ordered_sync's acquire; ordered regions see each other's work */
    __atomic_store_n(slot, token_in(next.round), MEMMODEL_RELEASE);
    gomp_unpark(slot, 1);
}

/* Dynamic and guided loops, under the work share's lock: chunks are claimed in the order of
 * iterations, and turns with them. */
static void take_turn (struct gomp_thread *thr)
{
    struct gomp_work_share *ws = thr->ts.work_share;
    struct turn mine = {ws->ordered_num_used, ws->ordered_cur}, next = after(mine, thr->ts.team);
    thr->ts.static_trip = (unsigned long)mine.round << 32 | mine.slot;
    ws->ordered_num_used = next.slot;
    ws->ordered_cur = next.round;
}

void gomp_ordered_first (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_work_share *ws = thr->ts.work_share;
    if (!has_order(thr->ts.team))
        return;
    take_turn(thr);
    if (ws->ordered_owner == -1U) { /* the first chunk of all */
        ws->ordered_owner = 0;
        __atomic_store_n(&ws->ordered_team_ids[0], 1, MEMMODEL_RELAXED);
    }
}

void gomp_ordered_next (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (!has_order(thr->ts.team))
        return;
    pass_token(thr);
    take_turn(thr);
}

void gomp_ordered_last (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (has_order(thr->ts.team))
        pass_token(thr);
}

void gomp_ordered_static_init (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (has_order(thr->ts.team)) /* published with the work share */
        thr->ts.work_share->ordered_team_ids[0] = 1;
}

void gomp_ordered_static_next (void)
{
    gomp_ordered_last();
}

/* Wait for the turn of the chunk that this thread has. */
void gomp_ordered_sync (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (!has_order(thr->ts.team))
        return;
    struct turn mine = own_turn(thr);
    int *slot = (int *)&thr->ts.work_share->ordered_team_ids[mine.slot];
    int token = token_in(mine.round);
    while (__atomic_load_n(slot, MEMMODEL_ACQUIRE) != token)
        do_wait(slot, !token);
}

void GOMP_ordered_start (void)
{
    gomp_ordered_sync();
}
