/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop_entries.h - the fork's entry points for worksharing loops, once for long and once for
 * unsigned long long iterators.  loop.c and loop_ull.c include it after upstream's file of
 * that name, whose functions it builds on, with these defined:
 *
 *   LOOP_T       the iterator's type
 *   LOOP_F(f)    the name of field f of a work share for that type
 *   LOOP_UP      the parameter that tells the direction (with its comma), if there is one
 *   LOOP_PASS    the same as an argument
 *   LOOP_IS_UP   does the loop count up?
 *   LOOP_WS_IS_DOWN(ws)  does the loop of this work share count down?
 *   LOOP_FIRST_ORDERED   a name for what LOOP_UPSTREAM functions call to begin ordered loops
 *   LOOP_ENTRY(name)     the exported name, a string
 *   LOOP_UPSTREAM(name)  upstream's static function
 *   LOOP_STATIC          what LOOP_STATIC_NEXT defined
 *   LOOP_ITER(name)      gomp_iter_##name or gomp_iter_ull_##name (iter.c, iter_ull.c)
 */

/* Is the calling thread a team of its own?  Not when managed: a team of one may have to give
 * its core up between two chunks. */
static inline bool is_team_of_one (void)
{
    const struct gomp_team *team = gomp_thread()->ts.team;
    return (team == NULL || team->nthreads == 1) && !inv_managed();
}

/* A team of one need not go through its loop in chunks. */
static bool take_all (LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_work_share *ws = gomp_thread()->ts.work_share;
    *istart = ws->LOOP_F(next);
    *iend = ws->LOOP_F(end);
    ws->LOOP_F(next) = ws->LOOP_F(end);
    return *istart != *iend;
}

/* --- loops of OMP_SCHEDULE=auto that are dynamic: split into portions */

/* Number of chunks; in unsigned arithmetic, where nothing overflows. */
static unsigned long long count_chunks (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr,
                                        unsigned long long chunk)
{
    unsigned long long distance = (unsigned long long)end - (unsigned long long)start;
    unsigned long long step = (unsigned long long)incr;
    if (LOOP_IS_UP ? start >= end : start <= end)
        return 0;
    if (!LOOP_IS_UP) {
        distance = -distance;
        step = -step;
    }
    unsigned long long trips = step == 1 ? distance : (distance - 1) / step + 1;
    return chunk <= 1 ? trips : (trips - 1) / chunk + 1;
}

/* Upstream multiplies the chunk with the step.  If that would overflow, the chunk is longer than
 * the loop, and is cut to the loop's length. */
static LOOP_T clamp_chunk (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T chunk)
{
    unsigned long long step = (unsigned long long)incr;
    if (!LOOP_IS_UP)
        step = -step;
    if (((unsigned long long)chunk | step) < UINT64_C(1) << 31)
        return chunk;
    unsigned long long trips = count_chunks(LOOP_PASS start, end, incr, 1);
    return (unsigned long long)chunk < trips ? chunk : (LOOP_T)(trips ? trips : 1);
}

/* Dynamic, all chunks counted in one word. */
static void init_shared (struct gomp_work_share *ws, LOOP_UP LOOP_T start, LOOP_T end,
                         LOOP_T incr, LOOP_T chunk)
{
    LOOP_UPSTREAM(init)(ws, LOOP_PASS start, end, incr, GFS_DYNAMIC,
                        clamp_chunk(LOOP_PASS start, end, incr, chunk));
}

/* In no order: split if that is worth it, else shared as upstream does. */
static void init_split (struct gomp_work_share *ws, LOOP_UP LOOP_T start, LOOP_T end,
                               LOOP_T incr, LOOP_T chunk, struct gomp_team *team)
{
    init_shared(ws, LOOP_PASS start, end, incr, chunk);
    if (team != NULL && team->nthreads > 1 &&
        gomp_loop_split(ws, team, count_chunks(LOOP_PASS start, end, incr,
                                               (unsigned long long)chunk)))
        ws->mode |= LOOP_SPLIT;
}

static bool split_next (struct gomp_work_share *ws, LOOP_T *istart, LOOP_T *iend)
{
    gomp_loop_checkpoint();
    struct gomp_thread *thr = gomp_thread();
    uint32_t chunk;
    /* own + 1; 0: this is the thread's first chunk */
    unsigned long own = thr->ts.static_trip;
    if (__builtin_expect(own == 0, 0))
        thr->ts.static_trip = own = gomp_loop_own(ws) + 1UL;
    own--;
    if (!gomp_split_own(&gomp_loop_portions(ws)[own], &chunk) &&
        !gomp_loop_steal(ws, (unsigned)own, &chunk))
        return false;
    unsigned long long size = (unsigned long long)ws->LOOP_F(chunk_size);
    unsigned long long first = (unsigned long long)ws->LOOP_F(next) + chunk * size;
    *istart = (LOOP_T)first;
    *iend = chunk + 1 == ws->loop_nchunks ? ws->LOOP_F(end) : (LOOP_T)(first + size);
    return true;
}

/* --- the next chunk, by schedule */

static bool dynamic_next (LOOP_T *istart, LOOP_T *iend)
{
    return is_team_of_one() ? take_all(istart, iend) : LOOP_ITER(dynamic_next)(istart, iend);
}

static bool guided_next (LOOP_T *istart, LOOP_T *iend)
{
    return is_team_of_one() ? take_all(istart, iend) : LOOP_ITER(guided_next)(istart, iend);
}

static bool timely_static_next (LOOP_T *istart, LOOP_T *iend)
{
    gomp_loop_checkpoint();
    return LOOP_STATIC(istart, iend) == 0;
}

/* A loop of OMP_SCHEDULE=auto that is static this time, and timed. */
static bool auto_next (struct gomp_work_share *ws, LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_thread *thr = gomp_thread();
    unsigned loop = ws->loop_auto;
    bool first = thr->ts.static_trip == 0;
    if (first && loop)
        gomp_auto_part_begin(loop);
    bool more = timely_static_next(istart, iend);
    if (loop && !more)
        gomp_auto_part_end(loop, thr->ts.team->nthreads);
    return more;
}

static bool runtime_next (LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_work_share *ws = gomp_thread()->ts.work_share;
    switch (ws->sched) {
    case GFS_DYNAMIC:
        return ws->mode & LOOP_SPLIT ? split_next(ws, istart, iend) : dynamic_next(istart, iend);
    case GFS_GUIDED:
        return guided_next(istart, iend);
    case GFS_AUTO:
        return auto_next(ws, istart, iend);
    default:
        return timely_static_next(istart, iend);
    }
}

/* --- the beginning of a loop */

/* OMP_SCHEDULE=auto.  site: where the loop is. */
static void init_auto (struct gomp_work_share *ws, LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr,
                       struct gomp_team *team, const void *site)
{
    /* Many times more chunks than cores, so that what is stolen last is short. */
    enum { CHUNKS_PER_THREAD = 32 };
    unsigned nthreads = team ? team->nthreads : 1;
    unsigned loop = nthreads > 1 ? gomp_auto_find(site) : 0;
    if (loop && gomp_auto_splits(loop)) {
        unsigned long long trips = count_chunks(LOOP_PASS start, end, incr, 1);
        unsigned long long chunk = trips / (CHUNKS_PER_THREAD * (unsigned long long)nthreads);
        init_split(ws, LOOP_PASS start, end, incr, (LOOP_T)(chunk ? chunk : 1), team);
        if (ws->mode & LOOP_SPLIT) {
            ws->loop_auto = loop;
            return;
        }
    }
    LOOP_UPSTREAM(init)(ws, LOOP_PASS start, end, incr, GFS_STATIC, 0);
    ws->sched = GFS_AUTO;
    ws->loop_auto = loop;
}

/* sched and chunk as the internal control variables have them. */
static void init_runtime (struct gomp_work_share *ws, LOOP_UP LOOP_T start, LOOP_T end,
                          LOOP_T incr, struct gomp_team *team, const void *site)
{
    const struct gomp_task_icv *icv = gomp_icv(false);
    LOOP_T chunk = (LOOP_T)icv->run_sched_chunk_size;
    unsigned sched = icv->run_sched_var;
    if ((sched & ~GFS_MONOTONIC) == GFS_AUTO)
        init_auto(ws, LOOP_PASS start, end, incr, team, site);
    else
        LOOP_UPSTREAM(init)(ws, LOOP_PASS start, end, incr, sched & ~GFS_MONOTONIC,
                            clamp_chunk(LOOP_PASS start, end, incr, chunk));
}

/* Not split, although GCC takes plain schedule(dynamic) for a loop that need not be monotonic.
 * Programs rely on what stock does: each thread's iterations come in the loop's order.  (MEGAHIT
 * makes a buffer of the size of the first item that a thread gets, the largest.) */
static bool dynamic_start (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T chunk,
                           LOOP_T *istart, LOOP_T *iend)
{
    if (gomp_work_share_start(0)) {
        init_shared(gomp_thread()->ts.work_share, LOOP_PASS start, end, incr, chunk);
        gomp_work_share_init_done();
    }
    return dynamic_next(istart, iend);
}

static bool guided_start (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T chunk,
                          LOOP_T *istart, LOOP_T *iend)
{
    if (gomp_work_share_start(0)) {
        LOOP_UPSTREAM(init)(gomp_thread()->ts.work_share, LOOP_PASS start, end, incr, GFS_GUIDED,
                            chunk);
        gomp_work_share_init_done();
    }
    return guided_next(istart, iend);
}

static bool __attribute__((noinline))
runtime_start (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T *istart, LOOP_T *iend)
{
    const void *site = __builtin_return_address(0); /* only compiled code calls this */
    struct gomp_thread *thr = gomp_thread();
    thr->ts.static_trip = 0;
    if (gomp_work_share_start(0)) {
        init_runtime(thr->ts.work_share, LOOP_PASS start, end, incr, thr->ts.team, site);
        gomp_work_share_init_done();
    }
    return runtime_next(istart, iend);
}

/* --- ordered loops (ordered.c); in a team of one everything is in order */

/* Chunks of dynamic ordered loops are counted, from 0.  The number of a chunk tells where it begins
 * and when its turn is, and one addition claims it.  The field incr, which is not needed any more,
 * keeps where the loop begins; its direction is in ws->mode. */
#define LOOP_FIRST(ws) ((unsigned long long)(ws)->LOOP_F(incr))
#define LOOP_COUNT(ws) (&(ws)->LOOP_F(next))

/* The caller has the work share for itself. */
static void count_ordered (struct gomp_work_share *ws)
{
    if (LOOP_WS_IS_DOWN(ws))
        ws->mode |= LOOP_DOWN;
    ws->mode |= LOOP_COUNTED;
    gomp_ordered_begin(ws, ws->LOOP_F(chunk_size) == ws->LOOP_F(incr));
    ws->LOOP_F(incr) = ws->LOOP_F(next);
    ws->LOOP_F(next) = 0;
}

static bool claim_ordered (struct gomp_thread *thr, LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_work_share *ws = thr->ts.work_share;
    unsigned long long size = (unsigned long long)ws->LOOP_F(chunk_size), first = LOOP_FIRST(ws),
                       length = (unsigned long long)ws->LOOP_F(end) - first, offset;
    if (ws->mode & LOOP_DOWN) {
        size = -size;
        length = -length;
    }
    /* relaxed: a claim hands over numbers, no data; the turn orders what the chunks do */
    unsigned long long chunk =
        (unsigned long long)__atomic_fetch_add(LOOP_COUNT(ws), 1, MEMMODEL_RELAXED);
    if (__builtin_mul_overflow(chunk, size, &offset) || offset >= length) {
        gomp_ordered_over(ws);
        return false;
    }
    gomp_ordered_number(thr, (unsigned long)chunk);
    unsigned long long past = length - offset > size ? offset + size : length;
    *istart = (LOOP_T)(ws->mode & LOOP_DOWN ? first - offset : first + offset);
    *iend = (LOOP_T)(ws->mode & LOOP_DOWN ? first - past : first + past);
    return true;
}

static bool claim_first (struct gomp_thread *thr, LOOP_T *istart, LOOP_T *iend)
{
    bool more = claim_ordered(thr, istart, iend);
    if (more)
        gomp_ordered_enter(thr->ts.work_share);
    return more;
}

/* In place of gomp_iter_dynamic_next_locked where upstream begins an ordered loop, under the work
 * share's lock. */
static bool LOOP_FIRST_ORDERED (LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_work_share *ws = thr->ts.work_share;
    if (is_team_of_one())
        return LOOP_ITER(dynamic_next_locked)(istart, iend);
    if (!(ws->mode & LOOP_COUNTED))
        count_ordered(ws);
    return claim_first(thr, istart, iend);
}

static bool ordered_dynamic_start (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T chunk,
                                   LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_thread *thr = gomp_thread();
    if (is_team_of_one())
        return dynamic_start(LOOP_PASS start, end, incr, chunk, istart, iend);
    if (gomp_work_share_start(1)) {
        init_shared(thr->ts.work_share, LOOP_PASS start, end, incr, chunk);
        count_ordered(thr->ts.work_share);
        gomp_work_share_init_done();
    }
    return claim_first(thr, istart, iend);
}

static bool ordered_guided_start (LOOP_UP LOOP_T start, LOOP_T end, LOOP_T incr, LOOP_T chunk,
                                  LOOP_T *istart, LOOP_T *iend)
{
    return (is_team_of_one() ? guided_start : LOOP_UPSTREAM(ordered_guided_start))(
        LOOP_PASS start, end, incr, chunk, istart, iend);
}

/* Upstream claims the next chunk before the turn of this one ends.  Here the turn ends first, so
 * the next thread waits neither for the claim nor for this thread to give its core back. */
static void end_turn (void)
{
    gomp_ordered_sync();
    gomp_ordered_last();
    gomp_loop_checkpoint();
}

static bool ordered_static_next (LOOP_T *istart, LOOP_T *iend)
{
    end_turn();
    return LOOP_STATIC(istart, iend) == 0;
}

static bool ordered_dynamic_next (LOOP_T *istart, LOOP_T *iend)
{
    struct gomp_thread *thr = gomp_thread();
    if (!(thr->ts.work_share->mode & LOOP_COUNTED)) /* of a team of one */
        return take_all(istart, iend);
    end_turn();
    gomp_ordered_pause(thr->ts.work_share);
    return claim_ordered(thr, istart, iend);
}

static bool ordered_guided_next (LOOP_T *istart, LOOP_T *iend)
{
    if (is_team_of_one())
        return take_all(istart, iend);
    end_turn();
    gomp_ordered_pause(gomp_thread()->ts.work_share);
    gomp_mutex_lock(&gomp_thread()->ts.work_share->lock);
    bool more = LOOP_ITER(guided_next_locked)(istart, iend);
    if (more)
        gomp_ordered_first();
    gomp_mutex_unlock(&gomp_thread()->ts.work_share->lock);
    return more;
}

static bool ordered_runtime_next (LOOP_T *istart, LOOP_T *iend)
{
    switch (gomp_thread()->ts.work_share->sched) {
    case GFS_DYNAMIC:
        return ordered_dynamic_next(istart, iend);
    case GFS_GUIDED:
        return ordered_guided_next(istart, iend);
    default:
        return ordered_static_next(istart, iend);
    }
}

/* --- what compiled code calls */

#define LOOP_ALIAS(entry, ours)                                                                  \
    extern __typeof(ours) LOOP_CALLED(entry) __asm__(LOOP_ENTRY(entry))                          \
        __attribute__((alias(#ours)))
#define LOOP_CALLED(entry) called_##entry
LOOP_ALIAS(dynamic_start, dynamic_start);
LOOP_ALIAS(dynamic_next, dynamic_next);
LOOP_ALIAS(guided_start, guided_start);
LOOP_ALIAS(guided_next, guided_next);
LOOP_ALIAS(nonmonotonic_dynamic_start, dynamic_start);
LOOP_ALIAS(nonmonotonic_dynamic_next, dynamic_next);
LOOP_ALIAS(nonmonotonic_guided_start, guided_start);
LOOP_ALIAS(nonmonotonic_guided_next, guided_next);
LOOP_ALIAS(nonmonotonic_runtime_next, runtime_next);
LOOP_ALIAS(maybe_nonmonotonic_runtime_next, runtime_next);
LOOP_ALIAS(ordered_static_next, ordered_static_next);
LOOP_ALIAS(ordered_dynamic_start, ordered_dynamic_start);
LOOP_ALIAS(ordered_dynamic_next, ordered_dynamic_next);
LOOP_ALIAS(ordered_guided_start, ordered_guided_start);
LOOP_ALIAS(ordered_guided_next, ordered_guided_next);
LOOP_ALIAS(ordered_runtime_next, ordered_runtime_next);

LOOP_ALIAS(nonmonotonic_runtime_start, runtime_start);
LOOP_ALIAS(maybe_nonmonotonic_runtime_start, runtime_start);
