/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.c - handing out the implicit tasks of an elastic region (tickets.h).
 */
#include "libgomp.h"
#include "tickets.h"
#include "cores.h"
#include "process.h"
#include <string.h>

enum {
    LOOK_EVERY = 16, /* looks of a thread that spins between two into others' portions */
    SHORT_NS = 2000,    /* an implicit task is taken with others when it is shorter, */
    TOGETHER_NS = 2000, /* so many that they take about this long, and no more than an equal part
                           for each core, */
    ALONE_NS = 200      /* but all that are left, if to have another core help would take longer */
};

/* --- ranges */

static uint64_t range_of (uint32_t epoch, uint32_t first, uint32_t end)
{
    inv_assert(first <= end && end <= GOMP_TICKETS_MOST);
    return (uint64_t)epoch << 32 | first << 16 | end;
}

static uint32_t first_of (uint64_t range)
{
    return (uint32_t)range >> 16;
}

static uint32_t end_of (uint64_t range)
{
    return (uint16_t)range;
}

static bool is_empty (uint64_t range)
{
    return first_of(range) >= end_of(range);
}

/* --- portions */

static struct gomp_deal *deal_of (struct gomp_tickets *t, uint64_t left)
{
    inv_assert((left >> GOMP_DEAL_SHIFT & 1) < GOMP_DEALS);
    return &t->deals[left >> GOMP_DEAL_SHIFT & 1];
}

/* Which portions may have tickets, as `left` says. */
static uint64_t portions_of (struct gomp_tickets *t, uint64_t left)
{
    bool dealt = gomp_tickets_are_dealt(left);
    return atomic_load_explicit(dealt ? &deal_of(t, left)->portions : &t->filled,
                                memory_order_relaxed);
}

/* What portion i begins with in the region of `left`, in which no thread has taken from it; empty
 * if the region is over, or begins with none there. */
static uint64_t __attribute__((noinline)) whole_portion (struct gomp_tickets *t, unsigned i,
                                                         uint64_t left)
{
    struct gomp_deal *deal = deal_of(t, left);
    if (!gomp_tickets_are_dealt(left))
        return 0;
    uint64_t portions = atomic_load_explicit(&deal->portions, memory_order_relaxed);
    uint32_t begins = atomic_load_explicit(&deal->begins[i], memory_order_relaxed);
    /* Partner: the fence of renew_deal. */
    atomic_thread_fence(memory_order_acquire);
    bool same = atomic_load_explicit(&t->left, memory_order_relaxed) == left;
    return same && portions >> i & 1 ? left >> 32 << 32 | begins : 0;
}

/* What portion i has, whose word is `range`. */
static inline uint64_t portion_now (struct gomp_tickets *t, unsigned i, uint64_t left,
                                    uint64_t range)
{
    return __builtin_expect(range >> 32 == left >> 32, 1) ? range : whole_portion(t, i, left);
}

/* From portion i. */
static inline __attribute__((always_inline)) bool take_from (struct gomp_tickets *t, unsigned i,
                                                             uint64_t left, bool own, unsigned *id)
{
    inv_assert(i < GOMP_TICKET_PORTIONS);
    struct gomp_ticket_portion *portion = &t->portion[i];
    uint64_t word = atomic_load_explicit(&portion->range, memory_order_relaxed), now, next;
    do {
        now = portion_now(t, i, left, word);
        if (is_empty(now))
            return false;
        next = own ? now + (1 << 16) : now - 1;
        *id = own ? first_of(now) : end_of(next);
        inv_assert(first_of(next) <= end_of(next) && next >> 32 == now >> 32);
        inv_assert(*id >= 1 && *id < GOMP_TICKETS_MOST); /* 0 is the master's */
    } while (!atomic_compare_exchange_weak_explicit(&portion->range, &word, next,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

static unsigned portion_of (int hold)
{
    return gomp_portion_of(hold, inv_process.ncores);
}

/* Puts first .. end - 1 into a portion: that of the thread's core, `own`.  It is empty, unless
 * another thread believes that it holds this core, too: then into the next one that is empty. */
static void fill_portion (struct gomp_tickets *t, unsigned own, uint32_t epoch, uint32_t first,
                        uint32_t end)
{
    inv_assert(own < GOMP_TICKET_PORTIONS && first < end);
    for (unsigned i = own;; i = (i + 1) % GOMP_TICKET_PORTIONS) {
        atomic_fetch_or_explicit(&t->filled, UINT64_C(1) << i, memory_order_relaxed);
        uint64_t now = atomic_load_explicit(&t->portion[i].range, memory_order_relaxed);
        if (is_empty(now) &&
            atomic_compare_exchange_strong_explicit(&t->portion[i].range, &now,
                                                    range_of(epoch, first, end),
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
}

/* --- taking */

/* An equal part for each core of the implicit tasks of the region, at most `left`. */
static uint32_t equal_part (struct gomp_tickets *t, uint32_t left)
{
    uint32_t all = atomic_load_explicit(&t->nthreads, memory_order_relaxed);
    inv_assert(inv_process.ncores > 0 && left > 0);
    uint32_t part = (all + inv_process.ncores - 1) / inv_process.ncores;
    return part < left ? part : left;
}

static bool are_together (struct gomp_tickets *t)
{
    return atomic_load_explicit(&t->together, memory_order_relaxed);
}

static uint32_t how_many (struct gomp_tickets *t, uint32_t left, bool several)
{
    uint32_t task_ns = atomic_load_explicit(&t->task_ns, memory_order_relaxed);
    if (several && are_together(t))
        return equal_part(t, left);
    if (!several || task_ns == 0 || task_ns >= SHORT_NS)
        return 1;
    if (left * task_ns <= ALONE_NS)
        return left;
    uint32_t part = equal_part(t, left), most = TOGETHER_NS / task_ns + 1;
    return part < most ? part : most;
}

/* Does the core take implicit tasks from the end of the range, if they are not to be taken in
 * order?  A core takes from the same end as long as the master stays on its core, so that it finds
 * the data of one region's implicit tasks in its cache in the next region.  The master's core takes
 * from the front, in the order in which processors prefetch. */
static bool takes_last (struct gomp_tickets *t, int hold)
{
    return hold >= 0 && atomic_load_explicit(&t->apart, memory_order_relaxed) &&
           (hold % 2 == 1) != atomic_load_explicit(&t->odd_first, memory_order_relaxed);
}

/* May the thread put tickets into a portion?  Not if several cores have one: all might be full. */
static bool may_put (int hold)
{
    return inv_process.ncores <= GOMP_TICKET_PORTIONS && portion_of(hold) < GOMP_TICKET_PORTIONS;
}

/* From the word `left`. */
static bool take_from_left (struct gomp_tickets *t, int hold, unsigned *id)
{
    bool last = takes_last(t, hold);
    uint64_t now = atomic_load_explicit(&t->left, memory_order_relaxed), next;
    uint32_t epoch, first, n;
    do {
        if (is_empty(now)) /* as where they are dealt */
            return false;
        epoch = (uint32_t)(now >> 32);
        n = how_many(t, end_of(now) - first_of(now), may_put(hold));
        inv_assert(n <= end_of(now) - first_of(now) && (n <= 1 || may_put(hold)));
        first = last ? end_of(now) - n : first_of(now);
        next = last ? range_of(epoch, first_of(now), first)
                    : range_of(epoch, first + n, end_of(now));
    } while (!atomic_compare_exchange_weak_explicit(&t->left, &now, next, memory_order_acquire,
                                                    memory_order_relaxed));
    /* What was read before the exchange may be of a previous region: n may be more or less than
     * would be best, but not more than there are. */
    *id = first;
    inv_assert(first >= 1 && first + n <= GOMP_TICKETS_MOST);
    if (n > 1) {
        fill_portion(t, portion_of(hold), epoch, first + 1, first + n);
        /* Between the exchange and now no thread could see these tickets.  A thread that found
         * nothing and acted on that (the process wants no cores, the watchdog sleeps) would leave
         * them to this thread alone, whose implicit task may wait for one of them. */
        gomp_want_cores();
    }
    return true;
}

/* For each registered region, by its number: the last epoch in which this thread has seen that
 * nothing is left in any portion.  It stays so: nothing is put into a portion of a region that is
 * dealt. */
static __thread uint32_t drained[GOMP_REGIONS_REGISTERED] __attribute__((tls_model("initial-exec")));

static bool is_drained (const struct gomp_tickets *t, uint64_t left)
{
    inv_assert(t->number < GOMP_REGIONS_REGISTERED);
    return drained[t->number] == left >> 32;
}

static void mark_drained (const struct gomp_tickets *t, uint64_t left)
{
    if (gomp_tickets_are_dealt(left))
        drained[t->number] = (uint32_t)(left >> 32);
}

/* From the next portion after the own one that has any. */
static bool steal_ticket (struct gomp_tickets *t, unsigned own, uint64_t left, unsigned *id)
{
    if (is_drained(t, left))
        return false;
    inv_assert(own <= GOMP_TICKET_PORTIONS);
    unsigned start = (own + 1) % GOMP_TICKET_PORTIONS;
    uint64_t portions = portions_of(t, left);
    portions = portions >> start | (start ? portions << (GOMP_TICKET_PORTIONS - start) : 0);
    for (; portions != 0; portions &= portions - 1) {
        unsigned i = ((unsigned)__builtin_ctzll(portions) + start) % GOMP_TICKET_PORTIONS;
        if (take_from(t, i, left, false, id))
            return true;
    }
    mark_drained(t, left);
    return false;
}

/* May the thread's own portion have any in this region? */
static bool has_own (struct gomp_tickets *t, unsigned own, uint64_t left)
{
    return own < GOMP_TICKET_PORTIONS && (portions_of(t, left) >> own & 1) != 0;
}

/* Not inlined, so that a ticket of the own portion costs no more than it must. */
static bool __attribute__((noinline)) take_elsewhere (struct gomp_tickets *t, int hold, uint64_t left,
                                                      unsigned *id)
{
    return take_from_left(t, hold, id) || steal_ticket(t, portion_of(hold), left, id);
}

bool gomp_ticket_take (struct gomp_tickets *t, int hold, bool more, unsigned *id)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_acquire);
    unsigned own = portion_of(hold);
    if (own < GOMP_TICKET_PORTIONS && take_from(t, own, left, true, id))
        return true;
    if (more && gomp_tickets_are_dealt(left) && has_own(t, own, left))
        return false;
    return take_elsewhere(t, hold, left, id);
}

static uint32_t count_in (struct gomp_tickets *t, unsigned i, uint64_t left)
{
    uint64_t word = atomic_load_explicit(&t->portion[i].range, memory_order_relaxed);
    uint64_t range = portion_now(t, i, left, word);
    return is_empty(range) ? 0 : gomp_tickets_in(range);
}

/* (`left` has been read with acquire, since the answer may be remembered in `drained`.) */
static bool any_left (struct gomp_tickets *t, uint64_t left)
{
    if (!is_empty(left))
        return true;
    if (is_drained(t, left))
        return false;
    uint64_t portions = portions_of(t, left);
    for (; portions != 0; portions &= portions - 1)
        if (count_in(t, (unsigned)__builtin_ctzll(portions), left) > 0)
            return true;
    mark_drained(t, left);
    return false;
}

bool gomp_tickets_dealt_in_view (struct gomp_tickets *t, uint64_t left, int hold)
{
    static __thread unsigned looks __attribute__((tls_model("initial-exec")));
    unsigned own = portion_of(hold);
    if (is_drained(t, left))
        return false;
    /* To read a portion's word makes it slower for its core to change.  So threads that have
     * emptied their own portion wait a little: others are most likely about to begin theirs. */
    if (!has_own(t, own, left))
        return true;
    return count_in(t, own, left) > 0 || ++looks % LOOK_EVERY == 0;
}

uint32_t gomp_tickets_count (struct gomp_tickets *t, uint32_t epoch)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_relaxed);
    if (left >> 32 != epoch)
        return 0;
    uint32_t count = is_empty(left) ? 0 : gomp_tickets_in(left);
    uint64_t portions = portions_of(t, left);
    for (; portions != 0; portions &= portions - 1)
        count += count_in(t, (unsigned)__builtin_ctzll(portions), left);
    return count;
}

bool gomp_tickets_any (struct gomp_tickets *t)
{
    return any_left(t, atomic_load_explicit(&t->left, memory_order_acquire));
}

bool gomp_tickets_any_of (struct gomp_tickets *t, uint32_t epoch)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_acquire);
    return left >> 32 == epoch && any_left(t, left);
}

/* --- opening */

/* Neighbouring thread numbers for the portions of the first n cores, or of all if fewer. */
static void deal_portions (struct gomp_tickets *t, struct gomp_deal *d, uint32_t epoch)
{
    const struct gomp_dealt_cores *to = &d->to;
    unsigned all = 0, cores, before = 0, n = d->nthreads;
    uint64_t portions = 0;
    for (unsigned i = 0; i < GOMP_TICKET_PORTIONS; i++)
        all += to->cores[i];
    cores = all < n ? all : n;
    for (unsigned k = 0; k < GOMP_TICKET_PORTIONS && before < cores; k++) {
        unsigned i = (to->first + k) % GOMP_TICKET_PORTIONS, after = before + to->cores[i];
        if (after > cores)
            after = cores;
        uint32_t first = before * n / cores, end = after * n / cores;
        if (first == 0)
            first = 1; /* 0 is the master's */
        inv_assert(before <= after && after <= cores && end <= n);
        before = after;
        if (first >= end)
            continue;
        atomic_store_explicit(&d->begins[i], first << 16 | end, memory_order_relaxed);
        portions |= UINT64_C(1) << i;
        /* The word may be of a region with the same epoch, 2^32 regions ago. */
        if (atomic_load_explicit(&t->portion[i].range, memory_order_relaxed) >> 32 == epoch)
            atomic_store_explicit(&t->portion[i].range, range_of(epoch - 1, 0, 0),
                                  memory_order_relaxed);
    }
    inv_assert(before == cores); /* all have been dealt */
    atomic_store_explicit(&d->portions, portions, memory_order_relaxed);
}

/* The cores or the number of threads differ from the last region that was dealt so.  The region
 * before is over, so nothing is left in any portion, and no thread is about to put anything there;
 * but threads may read. */
static void renew_deal (struct gomp_tickets *t, struct gomp_deal *d, uint32_t epoch,
                        uint32_t nthreads, const struct gomp_dealt_cores *to)
{
    inv_assert(to->first < GOMP_TICKET_PORTIONS && to->cores[to->first] > 0);
    atomic_store_explicit(&t->left, range_of(epoch, 0, 0), memory_order_relaxed);
    /* Partner: the fence of whole_portion.  A thread that has read any of the following sees this
     * as well. */
    atomic_thread_fence(memory_order_release);
    d->to = *to;
    d->nthreads = nthreads;
    deal_portions(t, d, epoch);
}

static bool is_new (const struct gomp_deal *d, uint32_t nthreads, const struct gomp_dealt_cores *to)
{
    return d->nthreads != nthreads || d->to.first != to->first ||
           memcmp(d->to.cores, to->cores, sizeof to->cores) != 0;
}

bool gomp_tickets_are_short (uint32_t task_ns)
{
    return task_ns > 0 && task_ns < SHORT_NS;
}

/* Threads poll these cache lines, so a value that is the same is not written. */
#define RENEW(field, value) \
    do \
        if (atomic_load_explicit(&(field), memory_order_relaxed) != (value)) \
            atomic_store_explicit(&(field), value, memory_order_relaxed); \
    while (0)

void gomp_tickets_open (struct gomp_tickets *t, uint32_t epoch, uint32_t nthreads, uint32_t task_ns,
                        struct gomp_ticket_ways ways, const struct gomp_dealt_cores *to)
{
    inv_assert(nthreads >= 1 && nthreads <= GOMP_TICKETS_MOST);
    inv_assert((uint32_t)(atomic_load_explicit(&t->left, memory_order_relaxed) >> 32) != epoch);
    unsigned which = ways.alone ? GOMP_DEAL_ALONE : GOMP_DEAL_ALL;
    if (to && is_new(&t->deals[which], nthreads, to))
        renew_deal(t, &t->deals[which], epoch, nthreads, to);
    RENEW(t->together, ways.together);
    RENEW(t->apart, ways.apart);
    RENEW(t->odd_first, ways.odd_first);
    RENEW(t->alone, ways.alone);
    RENEW(t->nthreads, nthreads);
    RENEW(t->task_ns, task_ns);
    RENEW(t->filled, 0);
    uint64_t left = to ? (uint64_t)epoch << 32 | GOMP_DEALT | which << GOMP_DEAL_SHIFT | nthreads
                          : range_of(epoch, 1, nthreads);
    /* release: takers see everything above, and what the caller has written */
    atomic_store_explicit(&t->left, left, memory_order_release);
}
