/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * core.c - the transitions of a core's word, and the two-sided promise that a core that
 * becomes free meets a process that wants it:
 *
 *     lender:  word := no holder;         fence;  look at wanting, parked, sleepers
 *     wanter:  set wanting, parked bit;   fence;  look at the words of the cores
 *
 * Both fences are seq_cst, so at least one side sees the other (Dekker's argument): no
 * core stays idle beside a process that wants it, and no process polls.  libinvasive/model/
 * core.pml is this file in Promela; keep the two alike.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/table/trace.h"


/* --- words */

/* acquire: partner is inv_core_forgo; where only the compare-and-swap counts it is not needed.
 * seq_cst: a sleeper names its home core and then looks at the word (wait.c); partner is the fence
 * of inv_core_offer, after which the lender looks at `home`.  Neither costs anything on x86. */
static inv_word word_of(struct inv_table *t, unsigned core)
{
    return atomic_load(&inv_core_at(t, core)->word);
}

/* Every transition: acq_rel, so that what the last holder did before it gave the core up
 * happens before what the next one does.  Each one's partner is the previous transition of
 * the same word.  On failure *seen is the new value.  (seq_cst for the trace: rmd says that it
 * begins and then reads the word; it sees this one, or we see that it has begun.) */
static bool exchange_word(struct inv_table *t, unsigned core, inv_word *seen, inv_word next)
{
    return atomic_compare_exchange_weak_explicit(&inv_core_at(t, core)->word, seen, next,
                                                 memory_order_seq_cst, memory_order_acquire);
}

static bool __attribute__((noinline)) move_traced(struct inv_table *t, unsigned core,
                                                  inv_word *seen, inv_word next)
{
    struct inv_trace_intent intent = inv_trace_intend(t, core, *seen, next);
    bool moved = exchange_word(t, core, seen, next);
    inv_trace_settle(intent, moved);
    return moved;
}

static bool change_word(struct inv_table *t, unsigned core, inv_word *seen, inv_word next)
{
    inv_assert(inv_word_epoch(next) == ((inv_word_epoch(*seen) + 1) & 0xffffff));
    inv_assert(!inv_word_handed(next) || inv_word_holder(next) != INV_NOBODY);
    inv_assert(!inv_word_handed(next) || !inv_word_reclaim(next) ||
               inv_word_holder(next) == inv_word_holder(*seen)); /* a new holder is not asked yet */
    if (inv_tracing(t))
        return move_traced(t, core, seen, next);
    bool moved = exchange_word(t, core, seen, next);
    if (moved && inv_tracing(t))
        inv_trace_late(t, core, *seen, next);
    return moved;
}

/* After this many tries rmd gives a change up: members can write to the domain's words all the
 * time, and all users wait for rmd.  rmd's next check does it instead (inv_core_repair). */
enum { RMD_TRIES = 100 };

/* --- statistics.  Fields of words come from shared memory: slots are checked here. */

static void add_to_counter(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static struct inv_counters *counters_of(struct inv_table *t, unsigned name)
{
    return name != INV_NOBODY && inv_slot_valid(t, (long)name - 1)
               ? &inv_slot_at(t, name - 1)->counters
               : NULL;
}

/* The word was `old` until now: book the time that the holder had the core. */
static void count_held_time(struct inv_table *t, unsigned core, inv_word old)
{
    uint64_t now = inv_now_ns();
    uint64_t since = atomic_exchange_explicit(&inv_core_at(t, core)->since_ns, now,
                                              memory_order_relaxed);
    unsigned holder = inv_word_holder(old), owner = inv_word_owner(old);
    if (holder == INV_NOBODY || since == 0 || since > now)
        return;
    struct inv_counters *user = counters_of(t, holder), *lender = counters_of(t, owner);
    if (user)
        add_to_counter(&user->held_ns, now - since);
    if (holder == owner)
        return;
    if (user)
        add_to_counter(&user->borrowed_ns, now - since);
    if (lender)
        add_to_counter(&lender->lent_used_ns, now - since);
}

static void count_taken(struct inv_table *t, unsigned core, inv_word old, unsigned me)
{
    count_held_time(t, core, old);
    if (inv_word_owner(old) != me + 1)
        add_to_counter(&inv_slot_at(t, me)->counters.borrows, 1);
}

/* --- transitions */

bool inv_core_borrow(struct inv_table *t, unsigned core, unsigned me)
{
    inv_assert(me < INV_MAX_SLOTS);
    inv_word w = word_of(t, core);
    do {
        bool mine = inv_word_owner(w) == me + 1;
        if (inv_word_holder(w) != INV_NOBODY || (inv_word_reclaim(w) && !mine))
            return false;
    } while (!change_word(t, core, &w, inv_word_next(w, me + 1, inv_word_owner(w), false)));
    inv_assert(inv_word_holder(w) == INV_NOBODY);
    inv_assert(!inv_word_reclaim(w) || inv_word_owner(w) == me + 1);
    count_taken(t, core, w, me);
    return true;
}

/* relaxed: most cores are held, and inv_core_borrow looks for itself */
static bool borrow_if_free(struct inv_table *t, unsigned core, unsigned me)
{
    inv_word w = atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
    return inv_word_holder(w) == INV_NOBODY && inv_core_borrow(t, core, me);
}

/* Groups of cores are ranges, so what is near lies around home: as far up, then as far down, as
 * the next group out reaches.  Whatever the table says, the last round takes in all. */
int inv_core_borrow_near(struct inv_table *t, unsigned home, unsigned me)
{
    unsigned ncores = t->ncores < INV_MAX_CORES ? t->ncores : INV_MAX_CORES;
    if (home >= ncores)
        return INV_NO_CORE;
    if (borrow_if_free(t, home, me))
        return (int)home;
    unsigned low = home, high = home + 1; /* low .. high - 1 have been looked at */
    for (unsigned reach = INV_SAME_CORE; low > 0 || high < ncores; reach++) {
        unsigned most = reach < INV_SAME_MACHINE ? reach : UINT8_MAX;
        inv_assert(low <= home && home < high && high <= ncores);
        inv_assert(reach <= INV_SAME_MACHINE); /* the last round takes in all */
        for (; high < ncores && inv_core_at(t, high)->apart <= most; high++)
            if (borrow_if_free(t, high, me))
                return (int)high;
        for (; low > 0 && inv_core_at(t, low)->apart <= most; low--)
            if (borrow_if_free(t, low - 1, me))
                return (int)low - 1;
    }
    return INV_NO_CORE;
}

bool inv_core_lend(struct inv_table *t, unsigned core, unsigned me)
{
    inv_assert(me < INV_MAX_SLOTS);
    inv_word w = word_of(t, core);
    do {
        if (inv_word_holder(w) != me + 1)
            return false;
    } while (!change_word(t, core, &w,
                          inv_word_next(w, INV_NOBODY, inv_word_owner(w), inv_word_reclaim(w))));
    inv_assert(inv_word_holder(w) == me + 1);
    count_held_time(t, core, w);
    if (inv_word_owner(w) == me + 1)
        add_to_counter(&inv_slot_at(t, me)->counters.lends, 1);
    return true;
}

enum inv_reclaim inv_core_reclaim(struct inv_table *t, unsigned core, unsigned owner)
{
    inv_assert(owner < INV_MAX_SLOTS);
    unsigned name = owner + 1;
    inv_word w = word_of(t, core), next;
    do {
        if (inv_word_owner(w) != name)
            return INV_RECLAIM_NOT_OWNER;
        if (inv_word_holder(w) == name)
            return INV_RECLAIM_HELD;
        if (inv_word_holder(w) == INV_NOBODY)
            next = inv_word_next(w, name, name, false);
        else if (inv_word_reclaim(w))
            return INV_RECLAIM_ASKED;
        else
            next = inv_word_next(w, inv_word_holder(w), name, true);
    } while (!change_word(t, core, &w, next));
    inv_assert(inv_word_owner(w) == name && inv_word_holder(w) != name);
    if (inv_word_holder(w) == INV_NOBODY) {
        inv_assert(inv_word_holder(next) == name && !inv_word_reclaim(next));
        count_taken(t, core, w, owner);
        return INV_RECLAIM_GOT;
    }
    inv_assert(inv_word_reclaim(next) && inv_word_holder(next) == inv_word_holder(w));
    add_to_counter(&inv_slot_at(t, owner)->counters.reclaims, 1);
    return INV_RECLAIM_ASKED;
}

bool inv_core_reclaim_cancel(struct inv_table *t, unsigned core, unsigned owner)
{
    inv_assert(owner < INV_MAX_SLOTS);
    inv_word w = word_of(t, core);
    unsigned tries = 0;
    do {
        if (inv_word_owner(w) != owner + 1 || !inv_word_reclaim(w) || tries++ == RMD_TRIES)
            return false;
    } while (!change_word(t, core, &w, inv_word_next(w, inv_word_holder(w), owner + 1, false)));
    inv_assert(inv_word_owner(w) == owner + 1 && inv_word_reclaim(w));
    return inv_word_holder(w) == INV_NOBODY;
}

bool inv_core_claim(struct inv_table *t, unsigned core, unsigned me)
{
    inv_word w = word_of(t, core);
    do {
        if (inv_word_holder(w) != me + 1 || !inv_word_handed(w))
            return false;
    } while (!change_word(t, core, &w,
                          inv_word_next(w, me + 1, inv_word_owner(w), inv_word_reclaim(w)) &
                       ~INV_WORD_HANDED));
    inv_assert(inv_word_holder(w) == me + 1 && inv_word_handed(w));
    return true;
}

/* The word moves in any case, if only by its epoch: release, the partner is the acquire load
 * of the word in fetch_home and inv_core_offer.  A process that loaded the word before fails to
 * hand the core over; one that loads it afterwards sees that the core is not our home. */
bool inv_core_forgo(struct inv_table *t, unsigned core, unsigned me)
{
    inv_word w = word_of(t, core), next;
    bool given;
    do {
        given = inv_word_holder(w) == me + 1 && inv_word_handed(w);
        next = inv_word_next(w, given ? INV_NOBODY : inv_word_holder(w), inv_word_owner(w),
                             inv_word_reclaim(w) && inv_word_owner(w) != me + 1);
    } while (!change_word(t, core, &w, next));
    inv_assert(!given || inv_word_holder(next) == INV_NOBODY);
    inv_assert(!inv_word_reclaim(next) || inv_word_owner(next) != me + 1);
    if (given)
        count_held_time(t, core, w);
    return inv_word_holder(next) == INV_NOBODY;
}

bool inv_core_evict(struct inv_table *t, unsigned core, unsigned owner, unsigned *evicted)
{
    inv_assert(owner < INV_MAX_SLOTS);
    unsigned name = owner + 1;
    inv_word w = word_of(t, core);
    do {
        if (inv_word_owner(w) != name || inv_word_holder(w) == INV_NOBODY ||
            inv_word_holder(w) == name)
            return false;
    } while (!change_word(t, core, &w, inv_word_next(w, name, name, false)));
    count_held_time(t, core, w);
    add_to_counter(&inv_slot_at(t, owner)->counters.evictions, 1);
    *evicted = inv_word_holder(w) - 1;
    inv_assert(inv_word_holder(w) != INV_NOBODY && *evicted != owner);
    return true;
}

/* --- processes that want a core */

bool inv_others_want(struct inv_table *t, unsigned me)
{
    for (unsigned i = 0; i < INV_SLOT_WORDS; i++) {
        uint64_t w = atomic_load_explicit(&t->wanting[i], memory_order_relaxed);
        if (i == me / 64)
            w &= ~(UINT64_C(1) << me % 64);
        if (w)
            return true;
    }
    return false;
}

bool inv_want_get(struct inv_table *t, unsigned me)
{
    inv_assert(me < INV_MAX_SLOTS);
    return atomic_load_explicit(&t->wanting[me / 64], memory_order_relaxed) >> me % 64 & 1;
}

/* Wakes rmd's bell thread (rmd/domain/bell.c), which acquires what the caller did before. */
static void ring_rmd(struct inv_table *t)
{
    atomic_fetch_add(&t->rmd_bell, 1);
    inv_futex_wake(&t->rmd_bell, 1, true);
}

/* seq_cst and a fence: the wanter's half of the promise at the top; partners are the fences
 * in inv_core_offer and ask_for_owner. */
void inv_want_set(struct inv_table *t, unsigned me, bool wants)
{
    uint64_t bit = UINT64_C(1) << me % 64;
    if (inv_want_get(t, me) == wants)
        return;
    if (wants)
        atomic_fetch_or(&t->wanting[me / 64], bit);
    else
        atomic_fetch_and(&t->wanting[me / 64], ~bit);
    atomic_thread_fence(memory_order_seq_cst);
    if (wants && atomic_load_explicit(&t->unwatched, memory_order_relaxed) &&
        atomic_exchange(&t->unwatched, 0))
        ring_rmd(t);
}

static bool is_live(struct inv_table *t, unsigned slot)
{
    return atomic_load_explicit(&inv_slot_at(t, slot)->state, memory_order_relaxed) ==
           INV_SLOT_LIVE;
}

/* --- waking */

static bool is_parked(struct inv_table *t, unsigned slot)
{
    return atomic_load_explicit(&inv_slot_at(t, slot)->parked, memory_order_relaxed) != 0;
}

/* Other threads may take and park workers meanwhile; only a process that attacks rmd causes more
 * tries. */
enum { TAKE_TRIES = 16 * INV_PARKED_MAX };

int inv_parked_take(struct inv_table *t, unsigned whom)
{
    _Atomic uint64_t *parked = &inv_slot_at(t, whom)->parked;
    uint64_t bits = atomic_load_explicit(parked, memory_order_relaxed);
    for (unsigned tries = 0; bits && tries < TAKE_TRIES; tries++) {
        int entry = 63 - __builtin_clzll(bits);
        inv_assert(entry >= 0 && entry < INV_PARKED_MAX && bits >> entry & 1);
        uint64_t bit = UINT64_C(1) << entry;
        /* acquire: partner is the owner's fetch_or, so that the worker's tid is there.  Of several
         * takers one sees the bit still set. */
        bits = atomic_fetch_and(parked, ~bit);
        if (bits & bit)
            return entry;
    }
    return -1;
}

/* Pinning a thread while it is parked costs 0.4 us, moving it when it runs 100 times as much.  rmd
 * may have more rights than the domain and does not pin what a table names: the worker pins itself
 * then. */
static void ring_parked(struct inv_table *t, unsigned whom, int entry, int core, bool pin)
{
    if (entry < 0 || entry >= INV_PARKED_MAX)
        return;
    struct inv_parked *a = &inv_slot_at(t, whom)->parked_workers[entry];
    inv_assert(core == INV_NO_CORE || (core >= 0 && core < INV_MAX_CORES));
    atomic_store_explicit(&a->core, core, memory_order_relaxed);
    int tid = atomic_load_explicit(&a->tid, memory_order_relaxed);
    if (pin && core >= 0 && tid > 0)
        inv_pin(t, tid, core);
    /* release: partner is the worker's acquire load of its bell, which then reads `core` */
    atomic_fetch_add_explicit(&a->bell, 1, memory_order_release);
    inv_futex_wake(&a->bell, 1, true);
}

void inv_parked_ring(struct inv_table *t, unsigned whom, int entry, int core)
{
    ring_parked(t, whom, entry, core, true);
}

/* The bump comes after what the sleeper is woken for: a thread that is between reading the
 * bell and sleeping does not sleep. */
static void wake_sleepers(struct inv_slot *slot)
{
    atomic_fetch_add(&slot->bell, 1);
    inv_futex_wake(&slot->bell, INT_MAX, true);
}

/* The sleeper is to wake on the core that it is handed, not where it went to sleep: another
 * thread may be spinning there. */
static void pin_sleeper(struct inv_table *t, struct inv_slot *slot, unsigned core)
{
    int tid = atomic_load_explicit(&slot->home_tid, memory_order_relaxed);
    if (tid > 0)
        inv_pin(t, tid, (int)core);
}

static bool needs_home(struct inv_slot *slot, unsigned core)
{
    return atomic_load_explicit(&slot->sleepers, memory_order_relaxed) > 0 &&
           atomic_load_explicit(&slot->home, memory_order_relaxed) == (int32_t)core;
}

/* Wakes a parked worker of `whom` for the core (INV_NO_CORE: for a token). */
static bool give_to_parked(struct inv_table *t, unsigned whom, int core, bool pin)
{
    int entry = inv_parked_take(t, whom);
    if (entry < 0)
        return false;
    ring_parked(t, whom, entry, core, pin);
    return true;
}

static bool give_to_wanting(struct inv_table *t, unsigned whom, int core, bool pin)
{
    return inv_slot_valid(t, whom) && inv_want_get(t, whom) && is_live(t, whom) &&
           is_parked(t, whom) && give_to_parked(t, whom, core, pin);
}

/* In turn, so that no process is always served last: slots after `me`, then from the start. */
static bool give_in_turn(struct inv_table *t, unsigned me, int core, bool pin)
{
    const unsigned n = INV_SLOT_WORDS; /* not what the head says: it may change meanwhile */
    unsigned start = me < INV_MAX_SLOTS ? me + 1 : 0;
    uint64_t below = (UINT64_C(1) << start % 64) - 1;
    inv_assert(start <= INV_MAX_SLOTS);
    for (unsigned k = 0; k <= n; k++) {
        unsigned i = (start / 64 + k) % n;
        uint64_t w = atomic_load_explicit(&t->wanting[i], memory_order_relaxed);
        if (k == 0)
            w &= ~below;
        else if (k == n)
            w &= below;
        for (; w; w &= w - 1)
            if (give_to_wanting(t, i * 64 + (unsigned)__builtin_ctzll(w), core, pin))
                return true;
    }
    return false;
}

/* --- offering a free core */

/* The core is free and reserved for its owner.  False: look at the word again. */
static bool offer_to_owner(struct inv_table *t, unsigned core, inv_word w, bool pin)
{
    unsigned owner = inv_word_owner(w) - 1;
    inv_assert(inv_word_holder(w) == INV_NOBODY && inv_word_reclaim(w));
    if (inv_word_owner(w) == INV_ELSEWHERE)
        ring_rmd(t); /* rmd then calls inv_core_is_free */
    if (!inv_slot_valid(t, owner))
        return true;
    struct inv_slot *slot = inv_slot_at(t, owner);
    if (needs_home(slot, core)) {
        if (!change_word(t, core, &w,
                         inv_word_next(w, owner + 1, owner + 1, false) | INV_WORD_HANDED))
            return false;
        count_taken(t, core, w, owner);
        if (pin)
            pin_sleeper(t, slot, core);
        wake_sleepers(slot);
        return true;
    }
    if (give_to_parked(t, owner, (int)core, pin))
        return true;
    /* A thread that needs it is awake and may have looked at the word just before the core
     * was lent: it does not sleep on the bell that it has read. */
    if (atomic_load_explicit(&slot->home, memory_order_relaxed) == (int32_t)core) {
        wake_sleepers(slot);
        return true;
    }
    /* A thread of the owner's is on its way to park and will look at the word itself; or
     * the owner does not need the core any more, and the reservation goes. */
    if (inv_want_get(t, owner))
        return true;
    change_word(t, core, &w, inv_word_next(w, INV_NOBODY, owner + 1, false));
    return false;
}

void inv_core_offer(struct inv_table *t, unsigned core, unsigned me)
{
    bool pin = me < INV_MAX_SLOTS; /* else rmd offers it */
    inv_assert(me <= INV_MAX_SLOTS && core < INV_MAX_CORES);
    for (unsigned tries = 0; pin || tries < RMD_TRIES; tries++) {
        /* The lender's half of the promise at the top.  Partners: the fences of a wanter
         * that parks or sleeps (core.h) and the one in inv_want_set. */
        atomic_thread_fence(memory_order_seq_cst);
        inv_word w = word_of(t, core);
        if (inv_word_holder(w) != INV_NOBODY)
            return;
        if (inv_word_reclaim(w)) {
            if (offer_to_owner(t, core, w, pin))
                return;
            continue;
        }
        if (give_to_wanting(t, me, (int)core, pin) ||
            give_to_wanting(t, (unsigned)((long)inv_word_owner(w) - 1), (int)core, pin))
            return;
        give_in_turn(t, me, (int)core, pin);
        return;
    }
}

/* --- doorbell of a process that waits in MPI */

/* Does the sleeping process have its home core, or nothing to wait for?  If another process
 * holds the core it is asked for it, and wakes the sleeper when it gives the core back. */
static bool fetch_home(struct inv_table *t, unsigned core, unsigned whom)
{
    unsigned name = whom + 1;
    inv_word w = word_of(t, core), next;
    for (;;) {
        unsigned holder = inv_word_holder(w), owner = inv_word_owner(w);
        /* Read the word first: if the sleeper took the core and gave it up again since,
         * the epoch has moved. */
        if (!needs_home(inv_slot_at(t, whom), core) || holder == name)
            return true;
        if (holder == INV_NOBODY && (owner == name || !inv_word_reclaim(w)))
            next = inv_word_next(w, name, owner, false) | INV_WORD_HANDED;
        else if (owner != name)
            return true;
        else if (inv_word_reclaim(w))
            return false;
        else
            next = inv_word_next(w, holder, owner, true);
        inv_assert(holder == INV_NOBODY || (owner == name && inv_word_reclaim(next)));
        if (!change_word(t, core, &w, next))
            continue;
        if (holder == INV_NOBODY) {
            inv_assert(inv_word_handed(next) && inv_word_holder(next) == name);
            count_taken(t, core, w, whom);
            pin_sleeper(t, inv_slot_at(t, whom), core);
            return true;
        }
        add_to_counter(&inv_slot_at(t, whom)->counters.reclaims, 1);
        return false;
    }
}

void inv_ring(struct inv_table *t, unsigned whom)
{
    struct inv_slot *slot = inv_slot_at(t, whom);
    /* seq_cst: partner is the sleeper's fence between sleepers++ and its last look at what
     * it waits for; it sees the message or we see it sleeping. */
    atomic_fetch_add(&slot->bell, 1);
    if (atomic_load(&slot->sleepers) == 0)
        return;
    int home = atomic_load_explicit(&slot->home, memory_order_relaxed);
    if (t->mode == INV_MODE_PINNED && inv_core_valid(t, home) &&
        !fetch_home(t, (unsigned)home, whom))
        return;
    wake_sleepers(slot);
}

/* --- what rmd does */

/* Wakes the old owner, whose core will not come back.  Also where it had not asked: it may have
 * seen that the core is its own, and be about to ask and to sleep until it comes. */
static void disown(struct inv_table *t, long old)
{
    if (inv_slot_valid(t, old))
        wake_sleepers(inv_slot_at(t, (unsigned)old));
}

/* A new owner that wanted a core already has asked for cores that it owned then, and not for this
 * one.  If it has no holder now it is reserved, or another process takes it before it is offered;
 * but only for an owner whose workers are parked: a worker that is awake looks at the words before
 * it parks.  Partners of the fence: inv_want_set, and that of a worker that parks. */
static void ask_for_owner(struct inv_table *t, unsigned core, unsigned name)
{
    inv_assert(name <= INV_MAX_SLOTS || name == INV_ELSEWHERE);
    atomic_thread_fence(memory_order_seq_cst);
    if (!inv_slot_valid(t, (long)name - 1) || !inv_want_get(t, name - 1))
        return;
    inv_word w = word_of(t, core);
    for (unsigned tries = 0; tries < RMD_TRIES && inv_word_owner(w) == name &&
                             inv_word_holder(w) != name && !inv_word_reclaim(w) &&
                             (inv_word_holder(w) != INV_NOBODY || is_parked(t, name - 1)); tries++)
        if (change_word(t, core, &w, inv_word_next(w, inv_word_holder(w), name, true)))
            break;
}

int inv_core_own(struct inv_table *t, unsigned core, int new_owner)
{
    unsigned name = new_owner < 0 ? INV_NOBODY : (unsigned)new_owner + 1;
    inv_assert(new_owner < INV_MAX_SLOTS);
    inv_word w = word_of(t, core);
    if (inv_word_owner(w) == name)
        return (int)name - 1;
    for (unsigned tries = 0;
         !change_word(t, core, &w, inv_word_next(w, inv_word_holder(w), name, false));)
        if (++tries == RMD_TRIES)
            return (int)inv_word_owner(w) - 1;
    count_held_time(t, core, w);
    int old = (int)inv_word_owner(w) - 1;
    disown(t, old);
    ask_for_owner(t, core, name);
    return old;
}

bool inv_core_withdraw(struct inv_table *t, unsigned core)
{
    inv_word w = word_of(t, core);
    unsigned tries = 0;
    while (!change_word(t, core, &w, inv_word_next(w, inv_word_holder(w), INV_ELSEWHERE, true)))
        if (++tries == RMD_TRIES)
            return false;
    count_held_time(t, core, w);
    disown(t, (long)inv_word_owner(w) - 1);
    return inv_word_holder(w) == INV_NOBODY;
}

bool inv_core_is_free(struct inv_table *t, unsigned core)
{
    return inv_word_holder(word_of(t, core)) == INV_NOBODY;
}

void inv_core_expel(struct inv_table *t, unsigned core)
{
    inv_word w = word_of(t, core);
    for (unsigned tries = 0;
         !change_word(t, core, &w, inv_word_next(w, INV_NOBODY, INV_ELSEWHERE, true));)
        if (++tries == RMD_TRIES)
            return;
    count_held_time(t, core, w);
}

void inv_core_admit(struct inv_table *t, unsigned core)
{
    inv_word w = word_of(t, core);
    unsigned tries = 0;
    while (!change_word(t, core, &w, inv_word_next(w, inv_word_holder(w), INV_NOBODY, false)))
        if (++tries == RMD_TRIES)
            return;
}

/* As in inv_core_forgo, the word moves in any case: a process that saw the dead one sleep and is
 * about to hand it the core fails. */
bool inv_core_reap(struct inv_table *t, unsigned core, unsigned dead)
{
    unsigned name = dead + 1, tries = 0;
    inv_assert(dead < INV_MAX_SLOTS);
    inv_word w = word_of(t, core);
    bool held, owned;
    do {
        if (tries++ == RMD_TRIES)
            return false;
        held = inv_word_holder(w) == name;
        owned = inv_word_owner(w) == name;
    } while (!change_word(t, core, &w,
                          inv_word_next(w, held ? INV_NOBODY : inv_word_holder(w),
                                        owned ? INV_NOBODY : inv_word_owner(w),
                                        !owned && inv_word_reclaim(w))));
    inv_assert(held == (inv_word_holder(w) == name));
    if (held)
        count_held_time(t, core, w);
    return held;
}

bool inv_core_seize(struct inv_table *t, unsigned core, unsigned holder)
{
    unsigned name = holder + 1, tries = 0;
    inv_assert(name != INV_NOBODY);
    inv_word w = word_of(t, core);
    do {
        if (inv_word_holder(w) != name || tries++ == RMD_TRIES)
            return false;
    } while (!change_word(t, core, &w,
                          inv_word_next(w, INV_NOBODY, inv_word_owner(w),
                                        inv_word_reclaim(w) && inv_word_owner(w) != name)));
    inv_assert(inv_word_holder(w) == name);
    count_held_time(t, core, w);
    return true;
}

/* --- threads that sleep in the kernel (core.h) */

static bool forget_absence(struct inv_table *t, unsigned core, int32_t tid)
{
    return atomic_compare_exchange_strong(&inv_core_at(t, core)->absent_tid, &tid, 0);
}

int32_t inv_core_thread(struct inv_table *t, unsigned core)
{
    struct inv_core *c = inv_core_at(t, core);
    int32_t absent = atomic_load_explicit(&c->absent_tid, memory_order_relaxed);
    return absent ? absent : atomic_load_explicit(&c->holder_tid, memory_order_relaxed);
}

/* The thread may wake up and give its hold away meanwhile.  seq_cst: partner is inv_hold_detach, which
 * changes holder_tid and then looks at absent_tid: one of the two sees the other. */
bool inv_core_lend_for(struct inv_table *t, unsigned core, unsigned owner, int32_t tid)
{
    struct inv_core *c = inv_core_at(t, core);
    unsigned name = owner + 1;
    inv_assert(owner < INV_MAX_SLOTS && tid > 0);
    inv_word w = word_of(t, core);
    if (inv_word_holder(w) != name || inv_word_owner(w) != name || inv_word_handed(w))
        return false;
    bool again = inv_word_returned(w) && atomic_load(&c->absent_tid) == tid;
    if (!again)
        atomic_store(&c->absent_tid, tid);
    if ((!again && atomic_load(&c->holder_tid) != tid) ||
        !change_word(t, core, &w, inv_word_next(w, INV_NOBODY, name, false))) {
        if (!again)
            forget_absence(t, core, tid);
        return false;
    }
    inv_assert(inv_word_owner(w) == name && inv_word_holder(w) == name && !inv_word_handed(w));
    count_held_time(t, core, w);
    add_to_counter(&inv_slot_at(t, owner)->counters.lends, 1);
    return true;
}

/* The word is read before absent_tid: a thread that ends its absence after we have looked moves the
 * word, and the exchange fails. */
bool inv_core_return_to(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                        unsigned *evicted)
{
    struct inv_core *c = inv_core_at(t, core);
    unsigned name = owner + 1, tries = 0;
    inv_assert(owner < INV_MAX_SLOTS && tid > 0);
    inv_word w = word_of(t, core), next;
    do {
        if (atomic_load(&c->absent_tid) != tid)
            return false;
        if (inv_word_owner(w) != name || inv_word_holder(w) == name || tries++ == RMD_TRIES) {
            forget_absence(t, core, tid);
            return false;
        }
        next = inv_word_next(w, name, name, false) | INV_WORD_RETURNED;
    } while (!change_word(t, core, &w, next));
    inv_assert(inv_word_holder(next) == name && inv_word_returned(next)); /* it may not know */
    count_held_time(t, core, w);
    *evicted = inv_word_holder(w) == INV_NOBODY ? INV_MAX_SLOTS : inv_word_holder(w) - 1;
    inv_assert(inv_word_owner(w) == name && *evicted != owner); /* not held by its owner */
    return true;
}

/* The word moves in any case: see inv_core_return_to. */
bool inv_core_end_absence(struct inv_table *t, unsigned core, unsigned owner, int32_t tid,
                          bool current)
{
    unsigned name = owner + 1;
    inv_assert(owner < INV_MAX_SLOTS && tid > 0);
    if (atomic_load(&inv_core_at(t, core)->absent_tid) != tid || !forget_absence(t, core, tid))
        return false;
    inv_word w = word_of(t, core), next;
    bool mine;
    do {
        bool returned = inv_word_holder(w) == name && (inv_word_returned(w) || current);
        bool unused = inv_word_holder(w) == INV_NOBODY && inv_word_owner(w) == name;
        mine = returned || unused;
        next = inv_word_next(w, unused ? name : inv_word_holder(w), inv_word_owner(w),
                             !unused && inv_word_reclaim(w));
    } while (!change_word(t, core, &w, next));
    /* Either the thread has the core, or its present holder keeps the core; a free one must be our
     * own. */
    inv_assert(inv_word_holder(next) == (mine ? name : inv_word_holder(w)));
    inv_assert(inv_word_holder(next) == inv_word_holder(w) || inv_word_owner(w) == name);
    if (mine)
        atomic_store(&inv_core_at(t, core)->holder_tid, tid);
    if (mine && inv_word_holder(w) == INV_NOBODY)
        count_held_time(t, core, w);
    return mine;
}

bool inv_core_repair(struct inv_table *t, unsigned core, unsigned name,
                     const uint64_t members[INV_SLOT_WORDS])
{
    inv_word w = word_of(t, core), next;
    unsigned tries = 0;
    do {
        if (tries++ == RMD_TRIES)
            return true; /* it is wrong still */
        unsigned holder = inv_word_holder(w), owner = inv_word_owner(w);
        bool member = holder > INV_NOBODY && holder <= INV_MAX_SLOTS &&
                      members[(holder - 1) / 64] >> (holder - 1) % 64 & 1;
        unsigned keeps = member ? holder : INV_NOBODY;
        bool reclaim = name == INV_ELSEWHERE ||
                       (name != INV_NOBODY && owner == name && inv_word_reclaim(w));
        if (keeps == holder && owner == name && reclaim == inv_word_reclaim(w))
            return false;
        next = inv_word_next(w, keeps, name, reclaim);
        inv_assert(keeps <= INV_MAX_SLOTS && inv_word_owner(next) == name);
        inv_assert(!reclaim || name != INV_NOBODY);
    } while (!change_word(t, core, &w, next));
    disown(t, (long)inv_word_owner(w) - 1);
    ask_for_owner(t, core, name);
    return true;
}

/* A process that died may have taken a worker's bit, made a core a sleeper's, or sent a message,
 * and died before it woke them.  A needless wake-up is harmless: the worker finds no core and
 * parks. */
static void wake_stranded(struct inv_table *t, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(t, slot);
    uint64_t parked = atomic_load(&s->parked);
    for (unsigned i = 0; i < INV_PARKED_MAX; i++) {
        struct inv_parked *a = &s->parked_workers[i];
        if (parked >> i & 1 || !atomic_load_explicit(&a->tid, memory_order_relaxed))
            continue;
        atomic_fetch_add_explicit(&a->bell, 1, memory_order_release);
        inv_futex_wake(&a->bell, 1, true);
    }
    /* Also when no thread sleeps yet: the dead process may have sent a message and not rung, and
     * the receiver be between its last look and its sleep. */
    wake_sleepers(s);
}

static void reap_slot(struct inv_slot *s)
{
    atomic_store(&s->parked, 0);
    atomic_store(&s->sleepers, 0);
    atomic_store(&s->home, INV_NO_CORE);
    for (unsigned a = 0; a < INV_PARKED_MAX; a++)
        atomic_store(&s->parked_workers[a].tid, 0);
}

static void wake_all_stranded(struct inv_table *t, unsigned but)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (inv_slot_valid(t, s) && s != but && is_live(t, s))
            wake_stranded(t, s);
}

static void offer_all(struct inv_table *t)
{
    unsigned ncores = t->ncores;
    for (unsigned c = 0; t->mode == INV_MODE_PINNED && c < ncores && c < INV_MAX_CORES; c++)
        inv_core_offer(t, c, INV_MAX_SLOTS);
}

/* For owners with parked workers: the others will look themselves, or want nothing any more. */
static void ask_for_owners(struct inv_table *t)
{
    unsigned ncores = t->ncores;
    for (unsigned c = 0; t->mode == INV_MODE_PINNED && c < ncores && c < INV_MAX_CORES; c++) {
        unsigned name = inv_word_owner(word_of(t, c));
        if (inv_slot_valid(t, (long)name - 1) && is_parked(t, name - 1))
            ask_for_owner(t, c, name);
    }
}

/* A process that wants a token and has none takes one although none is free (process/holdings.h).  Its
 * last one may have been returned while rmd had taken back, for a stopped process, that it wants any. */
static void wake_those_without(struct inv_table *t)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (inv_slot_valid(t, s) && atomic_load(&inv_slot_at(t, s)->tokens) <= 0 &&
            (t->mode == INV_MODE_ANONYMOUS || atomic_load(&inv_slot_at(t, s)->owned_cores) == 0))
            give_to_wanting(t, s, INV_NO_CORE, false);
}

void inv_rescue(struct inv_table *t)
{
    wake_all_stranded(t, INV_MAX_SLOTS);
    ask_for_owners(t);
    offer_all(t);
    wake_those_without(t);
    if (t->mode == INV_MODE_ANONYMOUS)
        inv_token_offer(t);
}

void inv_slot_reap(struct inv_table *t, unsigned dead, unsigned *freed)
{
    unsigned ncores = t->ncores, count = 0;
    struct inv_slot *slot = inv_slot_at(t, dead);
    inv_want_set(t, dead, false);
    reap_slot(slot); /* before the cores: see inv_core_reap */
    for (unsigned c = 0; c < ncores && c < INV_MAX_CORES; c++)
        count += inv_core_reap(t, c, dead);
    inv_assert(count <= ncores && count <= INV_MAX_CORES);
    int32_t tokens = atomic_exchange(&slot->tokens, 0);
    if (tokens > 0)
        atomic_fetch_add(&t->free_tokens, tokens);
    wake_all_stranded(t, dead);
    /* Not only its own: it may have died between lending, or returning, and offering. */
    offer_all(t);
    if (t->mode == INV_MODE_ANONYMOUS)
        inv_token_offer(t);
    if (freed)
        *freed = count;
}

/* --- tokens */

static void trace_token(struct inv_table *t, int64_t by)
{
    if (inv_tracing(t))
        inv_trace_write(t, INV_TRACE_TOKEN, (uint64_t)by);
}

/* A process notes its token before it takes it and after it returned it: if it dies in
 * between rmd gives one too many back, which costs a time slice, and never one too few,
 * which would cost a core. */
bool inv_token_take(struct inv_table *t, unsigned me)
{
    _Atomic int32_t *mine = &inv_slot_at(t, me)->tokens;
    int32_t n = atomic_load_explicit(&t->free_tokens, memory_order_relaxed);
    if (n <= 0)
        return false;
    atomic_fetch_add_explicit(mine, 1, memory_order_relaxed);
    do {
        if (n <= 0) {
            atomic_fetch_sub_explicit(mine, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&t->free_tokens, &n, n - 1));
    inv_assert(n > 0);
    trace_token(t, 1);
    return true;
}

void inv_token_force(struct inv_table *t, unsigned me)
{
    atomic_fetch_add_explicit(&inv_slot_at(t, me)->tokens, 1, memory_order_relaxed);
    atomic_fetch_sub(&t->free_tokens, 1);
    trace_token(t, 1);
}

bool inv_token_take_only(struct inv_table *t, unsigned me)
{
    int32_t none = 0;
    inv_assert(t->mode == INV_MODE_PINNED);
    if (!atomic_compare_exchange_strong(&inv_slot_at(t, me)->tokens, &none, 1))
        return false;
    atomic_fetch_sub(&t->free_tokens, 1);
    trace_token(t, 1);
    return true;
}

void inv_token_return(struct inv_table *t, unsigned me)
{
    trace_token(t, -1); /* first: once it is returned another may have it */
    int32_t n = atomic_fetch_add(&t->free_tokens, 1) + 1;
    int32_t left =
        atomic_fetch_sub_explicit(&inv_slot_at(t, me)->tokens, 1, memory_order_relaxed) - 1;
    /* The lender's half, as in inv_core_offer. */
    atomic_thread_fence(memory_order_seq_cst);
    /* The last one may be taken although none is free, but a parked worker does not see that it
     * was. */
    bool given = (n > 0 || left <= 0) && give_to_wanting(t, me, INV_NO_CORE, false);
    if (n > 0 && !given)
        give_in_turn(t, me, INV_NO_CORE, false);
}

void inv_token_offer(struct inv_table *t)
{
    atomic_thread_fence(memory_order_seq_cst); /* as in inv_token_return */
    int32_t n = atomic_load_explicit(&t->free_tokens, memory_order_relaxed);
    /* Any process may have written any number. */
    for (unsigned c = 0; n > 0 && c < INV_MAX_CORES; c++, n--)
        if (!give_in_turn(t, INV_MAX_SLOTS, INV_NO_CORE, false))
            break;
}

bool inv_token_overdrawn(struct inv_table *t)
{
    return atomic_load_explicit(&t->free_tokens, memory_order_relaxed) < 0;
}

/* --- pinning */

int inv_pin(struct inv_table *t, int tid, int core)
{
    if (t->emulated || !inv_core_valid(t, core))
        return 0;
    int cpu = inv_core_at(t, (unsigned)core)->os_cpu;
    if (cpu < 0 || cpu >= INV_MAX_CPUS)
        return cpu < 0 ? 0 : -EINVAL;
    inv_assert(tid >= 0);
    int saved = errno;
    int result = inv_cpus_set_one(tid, (size_t)cpu) == 0 ? 0 : -errno;
    errno = saved;
    return result;
}
