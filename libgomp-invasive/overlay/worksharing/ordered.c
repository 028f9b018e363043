/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ordered.c - loops with ordered regions: whose turn it is.  Replaces upstream's functions for
 * that; its doacross loops stay.
 *
 * The idea: the chunks of a loop are numbered in the order of their iterations, and the turn
 * goes from number to number round N words in memory, one for each thread of the team.  A
 * thread has one chunk at a time and begins no other before its turn is over, so no two threads
 * look at the same word, and a thread waits on a word that only the thread before it writes.
 * No thread needs to know which one comes next, or whether one has come for that chunk yet.
 * The turn of a chunk is over when its thread asks for the next one; that of a single iteration
 * when its ordered region is, since OpenMP allows no other in it.  (Upstream runs a second one in
 * order as well; LLVM's runtime does not either.)
 *
 * The words are the ints behind ws->ordered_team_ids, which upstream allocates, clears and frees.
 * A word has the number of the last chunk that had its turn there (turn_of), so the turn is passed
 * by one exchange; and a bit that asks for a wake-up.
 *
 * A hand-over to a thread that has left its core costs as much as some ten short chunks.  So
 * a waiting thread keeps its core for about that long, even if the core is wanted, as long as all
 * waiting threads do (keep_core); and a thread with short chunks claims no further one before the
 * threads that have left their cores had their turns (let_sleepers_pass).  After that as many
 * threads as there are cores pass the turn among them.
 *
 * Even that costs a cache miss or two for each chunk, which is worth it only if the threads compute
 * enough outside of their ordered regions.  A thread that waits for its turn for more than half
 * of its time does not: with one thread less the turn would come round as soon.  (Two threads that
 * compute p outside and o inside, and hand over in h, need o + h for a chunk and wait for
 * o + 2h - p; one alone needs p + o, which is less if p < h, and that is when the wait is
 * more than half of the two chunks' time.)  So such a thread claims no chunk for a while
 * (pause_claims), as long as another one goes on, and then tries again.
 */
#include "wait.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "hold.h"
#include "loops.h"
#include "ready.h"

#define gomp_ordered_first upstream_ordered_first
#define gomp_ordered_last upstream_ordered_last
#define gomp_ordered_next upstream_ordered_next
#define gomp_ordered_static_init upstream_ordered_static_init
#define gomp_ordered_static_next upstream_ordered_static_next
#define gomp_ordered_sync upstream_ordered_sync
#define GOMP_ordered_start upstream_GOMP_ordered_start
#define GOMP_ordered_end upstream_GOMP_ordered_end
#define UPSTREAM_UNUSED static void __attribute__((unused))
UPSTREAM_UNUSED upstream_ordered_first (void);
UPSTREAM_UNUSED upstream_ordered_last (void);
UPSTREAM_UNUSED upstream_ordered_next (void);
UPSTREAM_UNUSED upstream_ordered_static_init (void);
UPSTREAM_UNUSED upstream_ordered_static_next (void);
UPSTREAM_UNUSED upstream_ordered_sync (void);
UPSTREAM_UNUSED upstream_GOMP_ordered_start (void);
UPSTREAM_UNUSED upstream_GOMP_ordered_end (void);
#include <../libgomp/ordered.c>
#undef gomp_ordered_first
#undef gomp_ordered_last
#undef gomp_ordered_next
#undef gomp_ordered_static_init
#undef gomp_ordered_static_next
#undef gomp_ordered_sync
#undef GOMP_ordered_start
#undef GOMP_ordered_end

/* Is there an order to keep?  Not in a team of one. */
static inline bool has_order (const struct gomp_team *team)
{
    return team != NULL && team->nthreads > 1;
}

/* --- chunks, and the words on which threads wait for their turns */

enum { TURN_ASLEEP = INT_MIN }; /* in a word: its thread is asleep, or about to be */

static inline int turn_of (unsigned long chunk)
{
    return (int)((chunk + 1) & INT_MAX); /* 0 is in the words at first */
}

/* Division of 64 bits takes several times as long, and no loop has as many chunks. */
static inline int *turn_word (const struct gomp_thread *thr, unsigned long chunk)
{
    unsigned n = thr->ts.team->nthreads;
    inv_assert(n > 1);
    unsigned long index = chunk <= UINT_MAX ? (unsigned)chunk % n : chunk % n;
    return (int *)&thr->ts.work_share->ordered_team_ids[index];
}

/* The number of the chunk that a thread has.  Static loops: chunk k belongs to thread number
 * k mod N, and static_trip is how many chunks the thread has been given. */
static inline unsigned long own_chunk (const struct gomp_thread *thr)
{
    const struct gomp_work_share *ws = thr->ts.work_share;
    unsigned long trip = thr->ts.static_trip & ~(LOOP_LAST_TRIP | LOOP_TURN_OVER);
    if (ws->sched != GFS_STATIC && ws->sched != GFS_AUTO)
        return trip;
    inv_assert(trip > 0); /* the thread has a chunk */
    return (trip - 1) * thr->ts.team->nthreads + thr->ts.team_id;
}

#define single_iterations ordered_owner /* 1: no chunk has more.  Upstream: -1 at first */

/* How many threads wait for their turn otherwise than by looking. */
#define turn_sleepers ordered_num_used

static inline unsigned count_sleepers (struct gomp_work_share *ws)
{
    return __atomic_load_n(&ws->turn_sleepers, MEMMODEL_RELAXED); /* a hint */
}

/* acquire: partner is gomp_ordered_last's exchange; ordered regions see each other's work */
static inline bool turn_has_come (int *word, int turn)
{
    return (__atomic_load_n(word, MEMMODEL_ACQUIRE) & ~TURN_ASLEEP) == turn;
}

void gomp_ordered_begin (struct gomp_work_share *ws, bool single)
{
    ws->single_iterations = single;
    ws->turn_sleepers = 0;
    ws->ordered_cur = 0;
    ws->ordered_team_ids[0] = (unsigned)turn_of(0); /* published with the work share */
}

/* Under the work share's lock, with a chunk that was claimed under it: guided loops.  Those of
 * dynamic ones are counted. */
void gomp_ordered_first (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_work_share *ws = thr->ts.work_share;
    if (!has_order(thr->ts.team) || ws->sched == GFS_DYNAMIC)
        return;
    if (ws->single_iterations == -1U) /* the first chunk of all */
        gomp_ordered_begin(ws, false);
    gomp_ordered_number(thr, ws->ordered_cur++);
}

/* The chunk is done: it is the turn of the next one, unless that has come already. */
void gomp_ordered_last (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (!has_order(thr->ts.team) || (thr->ts.static_trip & LOOP_TURN_OVER))
        return;
    thr->ts.static_trip |= LOOP_TURN_OVER;
    unsigned long next = own_chunk(thr) + 1;
    int *word = turn_word(thr, next);
    /* release: partner is turn_has_come.  An exchange: either this sees that the thread is asleep
     * or that one's compare-and-swap fails (sleep_until_turn) */
    int before = __atomic_exchange_n(word, turn_of(next), MEMMODEL_ACQ_REL);
    inv_assert((before & ~TURN_ASLEEP) != turn_of(next)); /* a turn comes once */
    if (before & TURN_ASLEEP)
        gomp_unpark(word, 1);
}

void gomp_ordered_next (void)
{
    gomp_ordered_last();
    gomp_ordered_first();
}

void gomp_ordered_static_init (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (has_order(thr->ts.team))
        gomp_ordered_begin(thr->ts.work_share, thr->ts.work_share->chunk_size == 1);
}

void gomp_ordered_static_next (void)
{
    gomp_ordered_last();
}

/* --- waiting */

enum {
    LOOKS_MOST = 128, /* some 3 us: what it costs to give the core up and get it back */
    LOOKS_LEAST = 8,
    SHORT_NS = 5000,  /* a chunk in which handing cores over takes longer than computing */
    PASS_MOST = 32,   /* how often other threads are let pass between two chunks */
    PASS_LOOKS = 16,
    SAMPLE_EVERY = 8,
    SAMPLE_AGAIN = 4, /* after a rest */
    IDLE_VOTES = 2,   /* so many samples in sequence: rest */
    REST_LEAST_NS = 10000,
    REST_MOST_NS = 160000,
    REST_WANTED_NS = 20000, /* on a core that is wanted; see SPIN_WANTED_NS in spin.c */
    REST_LOOK_NS = 4000, /* does another thread go on? */
    REST_LOOKS = 32
};

/* As many looks as have been worth it lately. */
static __thread unsigned char looks __attribute__((tls_model("initial-exec"), used)) = LOOKS_MOST;
#define looks GOMP_OWN(looks)

/* What a thread knows of its chunks.  Stale after another loop, which costs a wrong decision
 * once. */
static __thread struct {
    /* the last one, if it had to sleep before its turn */
    uint64_t claimed_ns;  /* when it got the chunk; 0: not known */
    uint64_t computed_ns; /* how long it computed before it slept */
    uint64_t turn_ns;     /* when its turn came; 0: it did not sleep */
    /* the chunks for which it had to wait awake: every so many of them one is timed */
    uint64_t sampled_ns; /* when; 0: none yet */
    uint64_t rest_ns;    /* how long to rest next */
    unsigned char sample_in, sample_every, idle_votes;
} pace __attribute__((tls_model("initial-exec"), used)) = {.rest_ns = REST_LEAST_NS,
                                                           .sample_in = 1};
#define pace GOMP_OWN(pace)

/* Look for the turn for a while. */
static bool keep_core (int *word, int turn)
{
    for (unsigned i = 0; i < looks; i++) {
        if (turn_has_come(word, turn)) {
            looks = looks < LOOKS_MOST / 2 ? looks * 2 : LOOKS_MOST;
            return true;
        }
        cpu_relax();
    }
    looks = looks / 2 > LOOKS_LEAST ? looks / 2 : LOOKS_LEAST;
    return false;
}

/* The turn goes through threads that are asleep.  They will want this core soon: with
 * OMP_WAIT_POLICY=passive do_wait would lend it in between, for microseconds. */
static bool keep_idle_core (int *word, int turn)
{
    if (gomp_spin_count_var > 0 || !inv_managed() || inv_hold == INV_HOLD_NONE)
        return false;
    for (unsigned i = 0; i < LOOKS_MOST && !gomp_core_needed(); i++) {
        if (turn_has_come(word, turn))
            return true;
        cpu_relax();
    }
    return false;
}

static void sleep_until_turn (struct gomp_work_share *ws, int *word, int turn)
{
    uint64_t now = inv_now_ns();
    pace.computed_ns = pace.claimed_ns ? now - pace.claimed_ns : SHORT_NS;
    __atomic_add_fetch(&ws->turn_sleepers, 1, MEMMODEL_RELAXED);
    while (!turn_has_come(word, turn)) {
        int value = __atomic_load_n(word, MEMMODEL_RELAXED);
        if ((value & ~TURN_ASLEEP) == turn)
            continue;
        /* Fails when gomp_ordered_last has just been here. */
        if (!(value & TURN_ASLEEP) &&
            !__atomic_compare_exchange_n(word, &value, value | TURN_ASLEEP, false,
                                         MEMMODEL_RELAXED, MEMMODEL_RELAXED))
            continue;
        if (!keep_idle_core(word, turn))
            do_wait(word, value | TURN_ASLEEP);
    }
    unsigned before = __atomic_fetch_sub(&ws->turn_sleepers, 1, MEMMODEL_RELAXED);
    inv_assert(before > 0);
    pace.turn_ns = inv_now_ns();
}

/* The same as keep_core, and learn whether this thread waits for more than half of its time. */
static bool keep_core_timed (int *word, int turn)
{
    uint64_t start = inv_now_ns();
    bool came = keep_core(word, turn);
    uint64_t now = inv_now_ns(), since = pace.sampled_ns, chunks = pace.sample_every;
    pace.sampled_ns = now;
    pace.sample_in = pace.sample_every = SAMPLE_EVERY;
    if (since == 0)
        return came;
    if (2 * (now - start) * chunks <= now - since) {
        pace.idle_votes = 0;
        pace.rest_ns = REST_LEAST_NS;
    } else if (pace.idle_votes < IDLE_VOTES) {
        pace.idle_votes++;
    }
    return came;
}

/* Wait for the turn of the chunk that this thread has. */
void gomp_ordered_sync (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (!has_order(thr->ts.team) || (thr->ts.static_trip & LOOP_TURN_OVER))
        return;
    unsigned long chunk = own_chunk(thr);
    int *word = turn_word(thr, chunk), turn = turn_of(chunk);
    if (turn_has_come(word, turn))
        return;
    struct gomp_work_share *ws = thr->ts.work_share;
    if (count_sleepers(ws) == 0) {
        bool timed = ws->sched == GFS_DYNAMIC && --pace.sample_in == 0;
        if (timed ? keep_core_timed(word, turn) : keep_core(word, turn))
            return;
    }
    sleep_until_turn(ws, word, turn);
}

void GOMP_ordered_start (void)
{
    gomp_ordered_sync();
}

void GOMP_ordered_end (void)
{
    const struct gomp_thread *thr = gomp_thread();
    if (has_order(thr->ts.team) && thr->ts.work_share->single_iterations == 1)
        gomp_ordered_last();
}

/* --- between two chunks */

/* Let threads run that have left their cores with a chunk.  They may compute for long, or other
 * threads may: so not for ever. */
static void let_sleepers_pass (struct gomp_work_share *ws)
{
    for (unsigned i = 0; i < PASS_MOST && count_sleepers(ws) > 0; i++) {
        if (!inv_managed()) {
            if (gomp_yield_was_long())
                return;
        } else if (gomp_in_context() && gomp_context_could_switch()) {
            gomp_context_yield();
        } else if (inv_hold != INV_HOLD_NONE && gomp_ready_here(inv_hold)) {
            gomp_hold_yield();
            gomp_hold_acquire();
        } else {
            for (unsigned k = 0; k < PASS_LOOKS; k++)
                cpu_relax();
        }
    }
}

/* In dynamic loops: how many threads claim chunks, and whether all have been claimed.  Not on the
 * line that claims change. */
#define claimants ordered_cur
#define CLAIMS_OVER (1U << 31)

void gomp_ordered_enter (struct gomp_work_share *ws)
{
    pace.sample_in = 1;
    pace.sampled_ns = 0;
    pace.idle_votes -= pace.idle_votes == IDLE_VOTES; /* that was another loop */
    __atomic_add_fetch(&ws->claimants, 1, MEMMODEL_RELAXED);
}

void gomp_ordered_over (struct gomp_work_share *ws)
{
    if (!(__atomic_load_n(&ws->claimants, MEMMODEL_RELAXED) & CLAIMS_OVER))
        __atomic_or_fetch(&ws->claimants, CLAIMS_OVER, MEMMODEL_RELAXED);
}

static inline bool claims_over (struct gomp_work_share *ws)
{
    return __atomic_load_n(&ws->claimants, MEMMODEL_RELAXED) & CLAIMS_OVER;
}

/* Has another thread or process a use for the core on which this thread rests? */
static bool rests_on_wanted_core (void)
{
    return inv_managed() && inv_hold != INV_HOLD_NONE &&
           (gomp_core_needed() || inv_hold_poll() == INV_WANTED);
}

/* Stay away from the claims while another thread goes on with them; but not for long on a wanted
 * core: a thread or process that wants the core gets it when this thread waits for its turn. */
static void wait_while_claims_go_on (struct gomp_work_share *ws)
{
    uint64_t start = inv_now_ns(), looked = start, now;
    long count = __atomic_load_n(&ws->next, MEMMODEL_RELAXED), before;
    do {
        for (unsigned i = 0; i < REST_LOOKS && !claims_over(ws); i++)
            cpu_relax();
        if (claims_over(ws))
            return;
        if (!inv_managed() && gomp_others_could_run() && gomp_yield_was_long())
            return;
        if (count_sleepers(ws) > 0)
            let_sleepers_pass(ws);
        gomp_loop_checkpoint();
        now = inv_now_ns();
        if (now - looked < REST_LOOK_NS)
            continue;
        looked = now;
        before = count;
        count = __atomic_load_n(&ws->next, MEMMODEL_RELAXED);
        if (count == before || (now - start >= REST_WANTED_NS && rests_on_wanted_core()))
            return;
    } while (now - start < pace.rest_ns);
}

static void pause_claims (struct gomp_work_share *ws)
{
    unsigned n = __atomic_load_n(&ws->claimants, MEMMODEL_RELAXED);
    do /* the only claimant does not rest */
        if ((n & CLAIMS_OVER) || n <= 1)
            return;
    while (!__atomic_compare_exchange_n(&ws->claimants, &n, n - 1, true, MEMMODEL_RELAXED,
                                        MEMMODEL_RELAXED));
    inv_assert(n > 1); /* another thread goes on */
    wait_while_claims_go_on(ws);
    __atomic_add_fetch(&ws->claimants, 1, MEMMODEL_RELAXED);
    pace.rest_ns = pace.rest_ns < REST_MOST_NS ? 2 * pace.rest_ns : REST_MOST_NS;
    pace.idle_votes = IDLE_VOTES - 1;
    pace.sample_in = pace.sample_every = SAMPLE_AGAIN;
    pace.sampled_ns = inv_now_ns();
}

/* After a chunk whose thread slept. */
static void pause_for_sleepers (struct gomp_work_share *ws)
{
    uint64_t now = inv_now_ns(), computed = pace.computed_ns + (now - pace.turn_ns);
    pace.turn_ns = 0;
    pace.claimed_ns = now;
    if (computed >= SHORT_NS || count_sleepers(ws) == 0)
        return;
    let_sleepers_pass(ws);
    pace.claimed_ns = inv_now_ns();
}

void gomp_ordered_pause (struct gomp_work_share *ws)
{
    if (pace.turn_ns)
        pause_for_sleepers(ws);
    else
        pace.claimed_ns = 0;
    if (pace.idle_votes >= IDLE_VOTES && ws->sched == GFS_DYNAMIC)
        pause_claims(ws);
}
