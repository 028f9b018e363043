/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loops.h - what worksharing loops of signed and unsigned iterators have in common.
 *
 * Upstream's loop.c and loop_ull.c stay; loop.c and loop_ull.c here include them and put
 * other entry points in front (loop_entries.h).  New in those:
 *  - a team of one takes the whole loop at once;
 *  - schedule(runtime) with OMP_SCHEDULE=auto learns (loop_auto.c); loops that are unbalanced are split into
 *    portions (split.h).
 * Every claim of a chunk is a scheduling point: see gomp_loop_checkpoint.
 */
#ifndef GOMP_LOOPS_H
#define GOMP_LOOPS_H 1

#include "libgomp.h"
#include "cores.h"
#include "points.h"
#include "process.h"
#include "split.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

enum {
    LOOP_DOWN = 2,            /* in ws->mode: counts down; upstream's bit, in loop_ull.c */
    LOOP_SPLIT = 4,           /* above upstream's bits */
    LOOP_COUNTED = 8,         /* ordered and dynamic: the chunks are counted (loop_entries.h) */
    LOOP_CHUNKS_PER_PORTION = 8 /* a loop of fewer chunks is not worth splitting */
};

/* Between two chunks: give the core up if its owner asks for it.  One load when not. */
static inline void gomp_loop_checkpoint (void)
{
    if (inv_hold != INV_HOLD_NONE && gomp_hold_called_back())
        gomp_hold_checkpoint();
}

/* In static_trip, when the thread has the last chunk of a static loop; below it is the number
 * of chunks that it was given.  (Upstream puts -1 there, and the number is lost, which tells
 * whose turn it is in ordered loops.) */
#define LOOP_LAST_TRIP (1UL << (sizeof(long) * 8 - 1))

#define LOOP_STATIC_NEXT(name, T)                                                                \
    static int name (T *istart, T *iend)                                                         \
    {                                                                                            \
        struct gomp_thread *thr = gomp_thread();                                                 \
        unsigned long trip = thr->ts.static_trip;                                                \
        if (trip & LOOP_LAST_TRIP)                                                               \
            return -1;                                                                           \
        thr->ts.static_trip = trip &= ~LOOP_TURN_OVER;                                           \
        int state = gomp_iter_##name(istart, iend);                                              \
        if (thr->ts.static_trip == -1UL)                                                         \
            thr->ts.static_trip = LOOP_LAST_TRIP | (trip + 1);                                   \
        return state;                                                                            \
    }

/* The same in ordered loops of any schedule, whose static_trip tells the number of the chunk: its
 * turn is over. */
#define LOOP_TURN_OVER (LOOP_LAST_TRIP >> 1)

/* A split loop keeps its portions where an ordered one keeps its queue: upstream frees that
 * with the work share.  The other fields of ordered loops hold what the claims need. */
static inline struct gomp_portion *gomp_loop_portions (const struct gomp_work_share *ws)
{
    uintptr_t align = __alignof__(struct gomp_portion);
    return (struct gomp_portion *)(((uintptr_t)ws->ordered_team_ids + align - 1) & -align);
}
#define loop_nportions ordered_num_used
#define loop_nchunks ordered_cur
#define loop_auto ordered_owner /* number of the entry in the table of loop_auto.c, or 0 */

/* Try to split a loop into portions; the caller has the work share for itself.  False: too few
 * chunks, or no thread to share them with. */
extern bool gomp_loop_split (struct gomp_work_share *, struct gomp_team *, unsigned long long chunks);
/* The portion that the calling thread begins with. */
extern unsigned gomp_loop_own (const struct gomp_work_share *);
/* Claim a chunk of a split loop for a thread whose own portion is empty. */
extern bool gomp_loop_steal (struct gomp_work_share *, unsigned own, uint32_t *chunk);

/* ordered.c: the first chunk's turn comes; the caller has the work share for itself.  single: all
 * chunks are of one iteration. */
extern void gomp_ordered_begin (struct gomp_work_share *, bool single);
/* The thread has claimed the chunk of that number. */
static inline void gomp_ordered_number (struct gomp_thread *thr, unsigned long chunk)
{
    thr->ts.static_trip = chunk;
}
/* The thread's turn is over and it may claim another chunk: now, or after other threads had turns. */
extern void gomp_ordered_pause (struct gomp_work_share *);
/* Dynamic loops: the thread has claimed its first chunk; there are no more chunks. */
extern void gomp_ordered_enter (struct gomp_work_share *);
extern void gomp_ordered_over (struct gomp_work_share *);

/* loop_auto.c: what is known of the loop at `site`; a number > 0. */
extern unsigned gomp_auto_find (const void *site);
/* The loop begins: is it to be split this time? */
extern bool gomp_auto_splits (unsigned loop);
/* A thread's static part begins and has ended. */
extern void gomp_auto_part_begin (unsigned loop);
extern void gomp_auto_part_end (unsigned loop, unsigned nthreads);
/* A thread of the split loop has run out of its portion and stolen. */
extern void gomp_auto_stole (unsigned loop);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
