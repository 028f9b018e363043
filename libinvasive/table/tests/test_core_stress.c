/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_core_stress.c - the transitions of core.h under fire: threads that play processes on
 * one table compute, lend, borrow, reclaim, evict, park, sleep and ring at random, for the
 * number of milliseconds in argv[1] (default 2000), with the seed in argv[2].
 *
 * What it checks:
 *  - a core has one holder: a process that computes on a core enters itself as its occupant; two
 *    at once is a failure.  The data that a holder writes on its core is not atomic, so that
 *    ThreadSanitizer sees whether a hand-over orders it.  (Not in the run that evicts: an evicted
 *    process goes on until it looks.)
 *  - no wake-up is lost: every process that parks or sleeps is woken by others, at most after a
 *    patience of seconds; there are no timers here to heal a lost one;
 *  - a core that rmd moves to another domain has been left by all processes of this one, rmd hears
 *    of it, and no process takes it until it is back (in the runs that move cores; those that
 *    evict expel);
 *  - a core that rmd lends for a process that sleeps is that process's again, or is not, but both
 *    agree: the process is not left with a core that it does not know of (rmd returns cores only in
 *    the runs that evict, since the borrower goes on until it looks);
 *  - in the end every core is free, unreserved, and has its first owner;
 *  - tokens: never more running than there are, forced ones left out, and all there at the end.
 */
#define _GNU_SOURCE
#include "libinvasive/base/futex.h"
#include "libinvasive/table/core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 4, CORES = 3, PATIENCE_S = 20, OTHER_DOMAIN = -1 };

static struct inv_table *table;
static _Atomic bool stopping;
static _Atomic int occupant[CORES]; /* slot + 1 of the computing process, 0 none, or OTHER_DOMAIN */
static long workload[CORES];        /* written by the holder alone */
static bool evictions;              /* whether this run evicts */
static bool moves;                  /* whether rmd moves cores to another domain and back */
/* By rmd's thread alone while it runs: cores moved, holders expelled, cores lent for sleepers, returned. */
static unsigned moved, expelled, lent_for, returned;
static _Atomic bool asleep[CORES];  /* the thread that holds the core sleeps; rmd's guess */
static _Atomic int running;         /* anonymous mode: threads with a token */

static _Noreturn void fail(const char *what, unsigned me, int core)
{
    fprintf(stderr, "stress: %s (process %u, core %d)\n", what, me, core);
    for (unsigned c = 0; c < CORES; c++) {
        inv_word w = atomic_load(&inv_core_at(table, c)->word);
        fprintf(stderr, "  core %u: holder %u owner %u reclaim %d handed %d occupant %d\n", c,
                inv_word_holder(w), inv_word_owner(w), inv_word_reclaim(w), inv_word_handed(w),
                atomic_load(&occupant[c]));
    }
    for (unsigned s = 0; s < PROCESSES; s++) {
        struct inv_slot *slot = inv_slot_at(table, s);
        fprintf(stderr, "  process %u: wants %d parked %llx sleepers %u home %d\n", s,
                inv_want_get(table, s), (unsigned long long)atomic_load(&slot->parked),
                atomic_load(&slot->sleepers), atomic_load(&slot->home));
    }
    abort();
}

static unsigned random_below(unsigned *seed, unsigned n)
{
    return (unsigned)rand_r(seed) % n;
}

static struct inv_slot *slot_of(unsigned s)
{
    return inv_slot_at(table, s);
}

/* --- computing on a core */

static void compute(unsigned me, int core, unsigned *seed)
{
    if (evictions) {
        if (random_below(seed, 4) == 0)
            usleep(20); /* time to become a victim */
        return;
    }
    int nobody = 0, mine = (int)me + 1;
    if (!atomic_compare_exchange_strong(&occupant[core], &nobody, mine))
        fail("two holders of one core", me, core);
    for (unsigned i = random_below(seed, 20); i > 0; i--) {
        workload[core]++;
        inv_cpu_relax();
    }
    if (!atomic_compare_exchange_strong(&occupant[core], &mine, 0))
        fail("another process was on a core that we held", me, core);
}

static void lend_and_offer(unsigned me, int core)
{
    if (inv_core_lend(table, (unsigned)core, me))
        inv_core_offer(table, (unsigned)core, me);
}

/* --- getting one: own cores first, which are asked for */

static int get_core(unsigned me)
{
    for (unsigned c = 0; c < CORES; c++)
        if (inv_core_reclaim(table, c, me) == INV_RECLAIM_GOT)
            return (int)c;
    for (unsigned c = 0; c < CORES; c++)
        if (inv_core_borrow(table, c, me))
            return (int)c;
    return INV_NO_CORE;
}

static void withdraw_reclaims(unsigned me)
{
    for (unsigned c = 0; c < CORES; c++)
        if (inv_core_reclaim_cancel(table, c, me))
            inv_core_offer(table, c, me);
}

static void wait_on(_Atomic uint32_t *bell, uint32_t seen, unsigned me)
{
    for (int i = 0; i < PATIENCE_S; i++) {
        inv_futex_wait(bell, seen, 1000000000, true);
        if (atomic_load(bell) != seen)
            return;
    }
    fail("a wake-up was lost", me, INV_NO_CORE);
}

/* Park as worker 0 until there is a core: the contract in core.h, word for word. */
static int park(unsigned me)
{
    struct inv_slot *slot = slot_of(me);
    struct inv_parked *entry = &slot->parked_workers[0];
    inv_want_set(table, me, true);
    for (;;) {
        uint32_t seen = atomic_load(&entry->bell);
        atomic_store(&entry->core, INV_NO_CORE);
        atomic_fetch_or(&slot->parked, 1);
        atomic_thread_fence(memory_order_seq_cst);
        int core = get_core(me);
        bool withdrawn = false;
        if (core != INV_NO_CORE)
            withdrawn = atomic_fetch_and(&slot->parked, ~UINT64_C(1)) & 1;
        if (!withdrawn) {
            wait_on(&entry->bell, seen, me);
            int offered = atomic_load(&entry->core);
            bool got = offered >= 0 && inv_core_borrow(table, (unsigned)offered, me);
            if (got && core != INV_NO_CORE)
                lend_and_offer(me, offered);
            else if (got)
                core = offered;
        }
        if (core != INV_NO_CORE) {
            inv_want_set(table, me, false);
            withdraw_reclaims(me);
            return core;
        }
    }
}

/* --- waiting for a message.  messages[q] is what q waits for. */

static _Atomic unsigned messages[PROCESSES];

static void sleep_for_message(unsigned me, unsigned seen_messages)
{
    struct inv_slot *slot = slot_of(me);
    int home = atomic_load(&slot->home);
    for (;;) {
        uint32_t seen = atomic_load(&slot->bell);
        if (atomic_load(&messages[me]) != seen_messages)
            return;
        if (inv_core_claim(table, (unsigned)home, me))
            lend_and_offer(me, home);
        atomic_fetch_add(&slot->sleepers, 1);
        wait_on(&slot->bell, seen, me);
        atomic_fetch_sub(&slot->sleepers, 1);
    }
}

static int wait_for_message(unsigned me, int core)
{
    struct inv_slot *slot = slot_of(me);
    unsigned seen_messages = atomic_load(&messages[me]);
    atomic_store(&slot->home, core);
    lend_and_offer(me, core);
    sleep_for_message(me, seen_messages);
    int hold = inv_core_claim(table, (unsigned)core, me) ? core : get_core(me);
    atomic_store(&slot->home, INV_NO_CORE);
    if (hold != core && inv_core_forgo(table, (unsigned)core, me))
        inv_core_offer(table, (unsigned)core, me);
    if (hold == INV_NO_CORE)
        return park(me);
    withdraw_reclaims(me);
    return hold;
}

static void send_message(unsigned to)
{
    atomic_fetch_add(&messages[to], 1);
    inv_ring(table, to);
}

/* --- sleeping with the core.  The process is one thread, whose number is the slot's plus 1. */

static bool leave_core(struct inv_core *c, int32_t tid)
{
    return atomic_compare_exchange_strong(&c->holder_tid, &tid, 0);
}

/* As inv_hold_detach and its regain_lent (hold/hold.c). */
static int detach(unsigned me, int core)
{
    struct inv_core *c = inv_core_at(table, (unsigned)core);
    int32_t tid = (int32_t)me + 1;
    bool left = leave_core(c, tid);
    while (!left || atomic_load(&c->absent_tid) == tid) {
        bool current = left;
        left = inv_core_end_absence(table, (unsigned)core, me, tid, current) ||
               (inv_word_holder(atomic_load(&c->word)) == me + 1 &&
                (current || atomic_load(&c->holder_tid) == tid));
        left = left && (leave_core(c, tid) || current);
        if (!left)
            return INV_NO_CORE;
    }
    return core;
}

static int sleep_with_core(unsigned me, int core, unsigned *seed)
{
    atomic_store(&inv_core_at(table, (unsigned)core)->holder_tid, (int32_t)me + 1);
    atomic_store(&asleep[core], true);
    usleep(random_below(seed, 60));
    atomic_store(&asleep[core], false);
    return detach(me, core);
}

/* --- one process */

static void evict_someone(unsigned me)
{
    unsigned victim;
    for (unsigned c = 0; c < CORES; c++)
        if (inv_core_evict(table, c, me, &victim)) {
            lend_and_offer(me, (int)c);
            return;
        }
}

static int act(unsigned me, int core, unsigned *seed)
{
    switch (random_below(seed, evictions ? 9 : 8)) {
    case 0:
    case 1:
        lend_and_offer(me, core);
        return INV_NO_CORE;
    case 2:
        return me == 0 ? core : wait_for_message(me, core);
    case 3:
    case 4:
        send_message(random_below(seed, PROCESSES));
        return core;
    case 7:
        return sleep_with_core(me, core, seed);
    case 8:
        evict_someone(me);
        return core;
    default:
        return core;
    }
}

static void *process(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg & 0xff, seed = (unsigned)((uintptr_t)arg >> 8);
    int core = get_core(me);
    while (!atomic_load(&stopping)) {
        if (core == INV_NO_CORE)
            core = park(me);
        compute(me, core, &seed);
        inv_word w = atomic_load(&inv_core_at(table, (unsigned)core)->word);
        if (inv_word_holder(w) != me + 1)
            core = INV_NO_CORE; /* evicted */
        else if (inv_word_reclaim(w) && inv_word_owner(w) != me + 1) {
            lend_and_offer(me, core);
            core = INV_NO_CORE;
        } else
            core = act(me, core, &seed);
    }
    if (core != INV_NO_CORE)
        lend_and_offer(me, core);
    return NULL;
}

/* --- rmd, which lends cores for processes that sleep (rmd/domain/watch/blocked.c) */

/* 0, or the thread for which the core is lent, which may wake up meanwhile. */
static int32_t lent_to_others[CORES];

static void return_core(unsigned core)
{
    int32_t tid = lent_to_others[core];
    unsigned evicted;
    lent_to_others[core] = 0;
    if (!evictions || !inv_core_return_to(table, core, (unsigned)tid - 1, tid, &evicted))
        return;
    returned++;
}

static void lend_or_return_one(unsigned *seed)
{
    unsigned core = random_below(seed, CORES);
    if (lent_to_others[core] && (!atomic_load(&asleep[core]) || random_below(seed, 8) == 0))
        return_core(core);
    int32_t tid = inv_core_thread(table, core);
    if (lent_to_others[core] || !atomic_load(&asleep[core]) || tid <= 0)
        return;
    if (inv_core_lend_for(table, core, (unsigned)tid - 1, tid)) {
        lent_to_others[core] = tid;
        lent_for++;
        inv_core_offer(table, core, INV_MAX_SLOTS);
    }
}

/* --- rmd, which moves cores to another domain and back (rmd/users/users_divide.c) */

/* True when no process computes on the core any more; else it is asked back. */
static bool take_away(unsigned core, unsigned *seed)
{
    bool left = inv_core_withdraw(table, core);
    if (!left && random_below(seed, 4) == 0)
        return false;
    while (!left) {
        uint32_t seen = atomic_load(&table->rmd_bell);
        if (evictions && random_below(seed, 2) == 0) {
            inv_core_expel(table, core);
            expelled++;
        }
        left = inv_core_is_free(table, core);
        if (!left)
            wait_on(&table->rmd_bell, seen, PROCESSES);
    }
    return true;
}

static void compute_elsewhere(unsigned core, unsigned *seed)
{
    int nobody = 0, other = OTHER_DOMAIN;
    if (evictions)
        return; /* an expelled process goes on until it looks */
    if (!atomic_compare_exchange_strong(&occupant[core], &nobody, other))
        fail("a core is moved on which a process computes", PROCESSES, (int)core);
    for (unsigned i = random_below(seed, 200); i > 0; i--) {
        workload[core]++;
        inv_cpu_relax();
    }
    if (!atomic_compare_exchange_strong(&occupant[core], &other, 0))
        fail("a process took a core of another domain", PROCESSES, (int)core);
}

/* rmd makes another process the owner of the core, and is killed before it has saved that.  The
 * next rmd takes over (rmd/domain/takeover.c). */
static void own_and_take_over(unsigned core, unsigned *seed)
{
    static const uint64_t members[INV_SLOT_WORDS] = {(1 << PROCESSES) - 1};
    inv_core_own(table, core, (int)random_below(seed, PROCESSES));
    if (random_below(seed, 2) == 0)
        inv_core_offer(table, core, INV_MAX_SLOTS);
    if (inv_core_repair(table, core, core + 1, members))
        inv_core_offer(table, core, INV_MAX_SLOTS);
    inv_rescue(table);
}

static void *manager(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&stopping)) {
        lend_or_return_one(&seed);
        if (!moves || random_below(&seed, 4) != 0) {
            usleep(random_below(&seed, 20));
            continue;
        }
        unsigned core = random_below(&seed, CORES);
        if (take_away(core, &seed)) {
            compute_elsewhere(core, &seed);
            if (!inv_core_is_free(table, core))
                fail("a process holds a core of another domain", PROCESSES, (int)core);
            moved++;
        }
        inv_core_admit(table, core);
        if (random_below(&seed, 2) == 0) { /* it has no owner for a while */
            inv_core_offer(table, core, INV_MAX_SLOTS);
            usleep(random_below(&seed, 100));
        }
        inv_core_own(table, core, (int)core);
        inv_core_offer(table, core, INV_MAX_SLOTS);
        if (random_below(&seed, 4) == 0)
            own_and_take_over(core, &seed);
    }
    return NULL;
}

/* --- anonymous mode */

static void *token_process(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg & 0xff, seed = (unsigned)((uintptr_t)arg >> 8);
    struct inv_slot *slot = slot_of(me);
    inv_want_set(table, me, true);
    while (!atomic_load(&stopping)) {
        uint32_t seen = atomic_load(&slot->parked_workers[0].bell);
        atomic_fetch_or(&slot->parked, 1);
        atomic_thread_fence(memory_order_seq_cst);
        bool got = inv_token_take(table, me);
        if (!got || !(atomic_fetch_and(&slot->parked, ~UINT64_C(1)) & 1))
            wait_on(&slot->parked_workers[0].bell, seen, me);
        if (!got && !inv_token_take(table, me))
            continue;
        if (atomic_fetch_add(&running, 1) >= CORES)
            fail("more run than there are cores", me, INV_NO_CORE);
        for (unsigned i = random_below(&seed, 20); i > 0; i--)
            inv_cpu_relax();
        atomic_fetch_sub(&running, 1);
        inv_token_return(table, me);
    }
    return NULL;
}

/* --- a run */

static void make_table(enum inv_mode mode)
{
    int fd = inv_table_create(CORES, NULL, PROCESSES, mode, &table);
    if (fd < 0) {
        perror("stress: inv_table_create");
        exit(1);
    }
    close(fd);
    for (unsigned s = 0; s < PROCESSES; s++)
        atomic_store(&slot_of(s)->state, INV_SLOT_LIVE);
    for (unsigned c = 0; c < CORES; c++)
        inv_core_own(table, c, (int)c);
    for (unsigned s = 0; s < PROCESSES; s++)
        atomic_store(&messages[s], 0);
    atomic_store(&stopping, false);
}

/* A process that waits for a message at the end waits rightly.  A parked one is not helped:
 * processes that end give their cores up, and that has to wake it. */
static void wake_sleepers(void)
{
    for (unsigned s = 0; s < PROCESSES; s++)
        if (atomic_load(&slot_of(s)->sleepers) > 0)
            send_message(s);
}

static void run(void *(*body)(void *), unsigned ms, unsigned seed)
{
    pthread_t thread[PROCESSES + 1];
    bool pinned = body == process; /* then with rmd */
    unsigned threads = PROCESSES + pinned;
    for (unsigned s = 0; s < PROCESSES; s++)
        if (pthread_create(&thread[s], NULL, body, (void *)(uintptr_t)(s | (seed + s) << 8)))
            abort();
    if (pinned && pthread_create(&thread[PROCESSES], NULL, manager, (void *)(uintptr_t)seed))
        abort();
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L}, moment = {0, 1000000};
    nanosleep(&pause, NULL);
    atomic_store(&stopping, true);
    for (unsigned s = 0; s < threads; s++)
        while (pthread_tryjoin_np(thread[s], NULL) != 0) {
            wake_sleepers();
            nanosleep(&moment, NULL);
        }
}

static void check_cores_at_end(void)
{
    for (unsigned c = 0; c < CORES; c++) {
        inv_word w = atomic_load(&inv_core_at(table, c)->word);
        if (inv_word_owner(w) != c + 1)
            fail("a core has changed its owner", 0, (int)c);
        if (inv_word_holder(w) != INV_NOBODY)
            fail("a core is still held", 0, (int)c);
        if (atomic_load(&inv_core_at(table, c)->absent_tid) != 0)
            fail("a thread is still absent", 0, (int)c);
    }
}

static uint64_t total(size_t counter)
{
    uint64_t sum = 0;
    for (unsigned s = 0; s < PROCESSES; s++)
        sum += atomic_load(
            (_Atomic uint64_t *)((char *)&slot_of(s)->counters + counter));
    return sum;
}

static void run_pinned(unsigned ms, unsigned seed)
{
    make_table(INV_MODE_PINNED);
    moved = expelled = lent_for = returned = 0;
    memset(lent_to_others, 0, sizeof lent_to_others);
    run(process, ms, seed);
    check_cores_at_end();
    printf("pinned%s%s: %llu lends, %llu borrows, %llu reclaims, %llu evictions, %u moves, %u "
           "expelled, %u lent for sleepers, %u returned\n",
           evictions ? ", evicting" : "", moves ? ", moving" : "",
           (unsigned long long)total(offsetof(struct inv_counters, lends)),
           (unsigned long long)total(offsetof(struct inv_counters, borrows)),
           (unsigned long long)total(offsetof(struct inv_counters, reclaims)),
           (unsigned long long)total(offsetof(struct inv_counters, evictions)), moved, expelled,
           lent_for, returned);
    inv_table_unmap(table);
}

int main(int argc, char **argv)
{
    unsigned ms = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    for (int kind = 0; kind < 4; kind++) {
        evictions = kind & 1;
        moves = kind & 2;
        run_pinned(ms / 5, seed);
    }
    moves = false;
    make_table(INV_MODE_ANONYMOUS);
    run(token_process, ms / 5, seed);
    if (atomic_load(&table->free_tokens) != CORES)
        fail("tokens were lost", 0, INV_NO_CORE);
    puts("anonymous: all tokens are back");
    inv_table_unmap(table);
    return 0;
}
