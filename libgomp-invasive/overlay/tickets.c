/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tickets.c - handing out the implicit tasks of an elastic region (tickets.h).
 */
#include "libgomp.h"
#include "tickets.h"
#include "workers.h"

enum {
    SHORT_NS = 2000,    /* an implicit task is taken with others when it is shorter, */
    TOGETHER_NS = 2000, /* so many that they take about this long, and no more than a core's fair
                           share of all, */
    ALONE_NS = 200      /* but all that are left, if to have another core help would take longer */
};

/* --- ranges */

static uint64_t range_of (uint32_t epoch, uint32_t first, uint32_t end)
{
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

/* --- shares */

/* From share i. */
static inline __attribute__((always_inline)) bool take_from (struct gomp_tickets *t, unsigned i,
                                                             uint32_t epoch, bool own,
                                                             unsigned *id)
{
    struct gomp_ticket_share *share = &t->share[i];
    uint64_t now = atomic_load_explicit(&share->range, memory_order_relaxed), next;
    do {
        if (now >> 32 != epoch || is_empty(now))
            return false;
        next = own ? range_of(epoch, first_of(now) + 1, end_of(now))
                   : range_of(epoch, first_of(now), end_of(now) - 1);
        *id = own ? first_of(now) : end_of(next);
    } while (!atomic_compare_exchange_weak_explicit(&share->range, &now, next,
                                                    memory_order_acquire, memory_order_relaxed));
    if (is_empty(next) && atomic_load_explicit(&t->dealt, memory_order_relaxed))
        atomic_fetch_and_explicit(&t->shared, ~(UINT64_C(1) << i), memory_order_relaxed);
    return true;
}

static unsigned share_of (int seat)
{
    return gomp_share_of(seat, inv_process.ncores);
}

/* Leave first .. end - 1 in a share.  The seat's own is empty, unless another thread believes that
 * it sits there too: then in another one. */
static void put (struct gomp_tickets *t, unsigned own, uint32_t epoch, uint32_t first, uint32_t end)
{
    for (unsigned i = own;; i = (i + 1) % GOMP_TICKET_SHARES) {
        atomic_fetch_or_explicit(&t->shared, UINT64_C(1) << i, memory_order_relaxed);
        uint64_t now = atomic_load_explicit(&t->share[i].range, memory_order_relaxed);
        if (is_empty(now) &&
            atomic_compare_exchange_strong_explicit(&t->share[i].range, &now,
                                                    range_of(epoch, first, end),
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
}

/* --- taking */

static uint32_t fair_share (struct gomp_tickets *t, uint32_t left)
{
    uint32_t all = atomic_load_explicit(&t->nthreads, memory_order_relaxed);
    uint32_t part = (all + inv_process.ncores - 1) / inv_process.ncores;
    return part < left ? part : left;
}

static bool are_together (struct gomp_tickets *t)
{
    return atomic_load_explicit(&t->together, memory_order_relaxed);
}

static uint32_t how_many (struct gomp_tickets *t, uint32_t left, bool may_share)
{
    uint32_t task_ns = atomic_load_explicit(&t->task_ns, memory_order_relaxed);
    if (may_share && are_together(t))
        return fair_share(t, left);
    if (!may_share || task_ns == 0 || task_ns >= SHORT_NS)
        return 1;
    if (left * task_ns <= ALONE_NS)
        return left;
    uint32_t part = fair_share(t, left), most = TOGETHER_NS / task_ns + 1;
    return part < most ? part : most;
}

/* From which end a core takes short implicit tasks: always the same, so that what it brings into
 * its cache of one region's is there for the next one's. */
static bool takes_last (struct gomp_tickets *t, int seat)
{
    uint32_t task_ns = atomic_load_explicit(&t->task_ns, memory_order_relaxed);
    return seat > 0 && seat % 2 == 1 &&
           (are_together(t) || gomp_tickets_are_short(task_ns));
}

/* May the thread put tickets into a share?  Not where cores have one together: all might be full. */
static bool may_put (int seat)
{
    return inv_process.ncores <= GOMP_TICKET_SHARES && share_of(seat) < GOMP_TICKET_SHARES;
}

/* From the word that all share. */
static bool take_unshared (struct gomp_tickets *t, int seat, unsigned *id)
{
    bool last = takes_last(t, seat);
    uint64_t now = atomic_load_explicit(&t->left, memory_order_relaxed), next;
    uint32_t epoch, first, n;
    do {
        if (is_empty(now))
            return false;
        epoch = (uint32_t)(now >> 32);
        n = how_many(t, end_of(now) - first_of(now), may_put(seat));
        first = last ? end_of(now) - n : first_of(now);
        next = last ? range_of(epoch, first_of(now), first)
                    : range_of(epoch, first + n, end_of(now));
    } while (!atomic_compare_exchange_weak_explicit(&t->left, &now, next, memory_order_acquire,
                                                    memory_order_relaxed));
    /* What was read before the exchange may be of an earlier region: n may be more or less than
     * would be best, but not more than there are. */
    *id = first;
    if (n > 1) {
        put(t, share_of(seat), epoch, first + 1, first + n);
        /* Since the exchange nobody could see them.  Who found nothing then and said so (does not
         * want cores, a watchdog asleep) would leave them to us alone, and our implicit task may
         * wait for one of them. */
        gomp_want_cores();
    }
    return true;
}

/* From the next share after the own one that has any. */
static bool steal (struct gomp_tickets *t, unsigned own, uint32_t epoch, unsigned *id)
{
    unsigned start = (own + 1) % GOMP_TICKET_SHARES;
    uint64_t shared = atomic_load_explicit(&t->shared, memory_order_relaxed);
    shared = shared >> start | (start ? shared << (GOMP_TICKET_SHARES - start) : 0);
    for (; shared != 0; shared &= shared - 1) {
        unsigned i = ((unsigned)__builtin_ctzll(shared) + start) % GOMP_TICKET_SHARES;
        if (take_from(t, i, epoch, false, id))
            return true;
    }
    return false;
}

/* Apart, so that a ticket of the own share costs no more than it must. */
static bool __attribute__((noinline)) take_elsewhere (struct gomp_tickets *t, int seat,
                                                      uint32_t epoch, unsigned *id)
{
    return take_unshared(t, seat, id) || steal(t, share_of(seat), epoch, id);
}

bool gomp_ticket_take (struct gomp_tickets *t, int seat, unsigned *id)
{
    uint32_t epoch =
        (uint32_t)(atomic_load_explicit(&t->left, memory_order_acquire) >> 32);
    unsigned own = share_of(seat);
    return (own < GOMP_TICKET_SHARES && take_from(t, own, epoch, true, id)) ||
           take_elsewhere(t, seat, epoch, id);
}

static uint32_t count_in (const struct gomp_ticket_share *share, uint32_t epoch)
{
    uint64_t range = atomic_load_explicit(&share->range, memory_order_relaxed);
    return range >> 32 == epoch && !is_empty(range) ? gomp_tickets_in(range) : 0;
}

static bool any_left (struct gomp_tickets *t, uint64_t left)
{
    if (!is_empty(left))
        return true;
    uint64_t shared = atomic_load_explicit(&t->shared, memory_order_relaxed);
    for (; shared != 0; shared &= shared - 1)
        if (count_in(&t->share[__builtin_ctzll(shared)], (uint32_t)(left >> 32)) > 0)
            return true;
    return false;
}

uint32_t gomp_tickets_count (struct gomp_tickets *t, uint32_t epoch)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_relaxed);
    uint32_t count = left >> 32 == epoch && !is_empty(left) ? gomp_tickets_in(left) : 0;
    uint64_t shared = atomic_load_explicit(&t->shared, memory_order_relaxed);
    for (; shared != 0; shared &= shared - 1)
        count += count_in(&t->share[__builtin_ctzll(shared)], epoch);
    return count;
}

bool gomp_tickets_any (struct gomp_tickets *t)
{
    return any_left(t, atomic_load_explicit(&t->left, memory_order_relaxed));
}

bool gomp_tickets_any_of (struct gomp_tickets *t, uint32_t epoch)
{
    uint64_t left = atomic_load_explicit(&t->left, memory_order_relaxed);
    return left >> 32 == epoch && any_left(t, left);
}

/* --- opening */

/* Put neighbouring thread numbers into the shares of the first n cores, or of all if these are fewer.  The
 * region before is over, so nothing is left in any share, and no thread is about to put anything there.
 * Returns which shares have any. */
static uint64_t deal (struct gomp_tickets *t, uint32_t epoch, uint32_t n, const struct gomp_homes *homes)
{
    unsigned all = 0, cores, before = 0;
    uint64_t shared = 0;
    for (unsigned i = 0; i < GOMP_TICKET_SHARES; i++)
        all += homes->cores[i];
    cores = all < n ? all : n;
    for (unsigned k = 0; k < GOMP_TICKET_SHARES && before < cores; k++) {
        unsigned i = (homes->first + k) % GOMP_TICKET_SHARES, after = before + homes->cores[i];
        if (after > cores)
            after = cores;
        uint32_t first = before * n / cores, end = after * n / cores;
        if (first == 0)
            first = 1; /* 0 is the master's */
        before = after;
        if (first >= end)
            continue;
        /* release: partner is who takes from there */
        atomic_store_explicit(&t->share[i].range, range_of(epoch, first, end), memory_order_release);
        shared |= UINT64_C(1) << i;
    }
    return shared;
}

bool gomp_tickets_are_short (uint32_t task_ns)
{
    return task_ns > 0 && task_ns < SHORT_NS;
}

void gomp_tickets_open (struct gomp_tickets *t, uint32_t epoch, uint32_t nthreads,
                        uint32_t task_ns, bool together, const struct gomp_homes *homes)
{
    uint64_t shared = homes ? deal(t, epoch, nthreads, homes) : 0;
    atomic_store_explicit(&t->together, together, memory_order_relaxed);
    atomic_store_explicit(&t->dealt, homes != NULL, memory_order_relaxed);
    atomic_store_explicit(&t->nthreads, nthreads, memory_order_relaxed);
    atomic_store_explicit(&t->task_ns, task_ns, memory_order_relaxed);
    atomic_store_explicit(&t->shared, shared, memory_order_relaxed);
    /* release: takers see everything above, and what the caller has written */
    atomic_store_explicit(&t->left, range_of(epoch, homes ? nthreads : 1, nthreads),
                          memory_order_release);
}
