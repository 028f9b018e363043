/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * history.c - what is remembered of each outlined function (history.h).
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "history.h"
#include "objects.h"
#include "process.h"
#include "region.h"

enum {
    ENTRIES = 256,
    MOST_GROWTH = 4,       /* a duration counts as at most so many times the mean */
    ALONE_MOST_NS = 12000, /* core time of a region that could be better off on one core */
    /* One core must be quicker by one of so many parts of the time.  The region's time does not
     * show all costs: its data comes to the master's cache, and is missing in that of the core
     * which computes on it next. */
    ALONE_GAIN = 4,
    APART_MOST_NS = 1000000, /* of an implicit task whose core is chosen by what is in its cache */
};

/* Its readers and writers are any threads; each field names its writers (history.h). */
static struct gomp_history table[ENTRIES];

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static struct gomp_history *entry_of (void (*fn) (void *))
{
    return &table[(uintptr_t)fn * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

struct gomp_history *gomp_history_find (void (*fn) (void *))
{
    struct gomp_history *h = entry_of(fn);
    return GET(h->fn) == fn ? h : NULL;
}

struct gomp_history *gomp_history_of (void (*fn) (void *))
{
    struct gomp_history *h = entry_of(fn);
    if (GET(h->fn) != fn) {
        SET(h->patience_ns, 0);
        SET(h->suspicion, GOMP_UNKNOWN);
        SET(h->core_ns, 0);
        SET(h->alone_ns, 0);
        SET(h->shared_ns, 0);
        SET(h->stalled, false);
        SET(h->loops, GOMP_NOT_SEARCHED);
        SET(h->yields, GOMP_YIELDS_UNKNOWN);
        SET(h->yielded, 0);
        SET(h->in_order_ns, 0);
        SET(h->apart_ns, 0);
        SET(h->waits, 0);
        SET(h->inside, GOMP_INSIDE_UNKNOWN);
        SET(h->narrow, 0);
        SET(h->fn, fn);
    }
    return h;
}

/* A process of an anonymous domain has tokens instead of cores. */
unsigned gomp_cores_at_hand (void)
{
    unsigned cores = 0, us = inv_own_name();
    if (!inv_managed())
        return inv_domain_cores();
    if (inv_process.anonymous) {
        int tokens = inv_tokens_held();
        return tokens > 1 ? (unsigned)tokens : 1;
    }
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = GET(inv_core_at(inv_process.table, core)->word);
        cores += inv_word_holder(w) == us || inv_word_owner(w) == us || inv_word_holder(w) == 0;
    }
    return cores > 1 ? cores : 1;
}

void gomp_history_region_opens (struct gomp_region *region, bool nested)
{
    SET(region->sleeps, 0);
    bool timed = !nested && inv_managed() && gomp_history_samples(GET(region->epoch));
    region->began_ns = timed ? inv_now_ns() : 0;
}

/* A quarter of the new value; all of it when there is no old one. */
static uint64_t mean (uint64_t old, uint64_t new)
{
    return old == 0 ? new : (3 * old + new) / 4;
}

/* The same for a duration: if another thread's time slice interrupted it, it does not count in full. */
static void add_duration (_Atomic uint64_t *where, uint64_t ns)
{
    uint64_t old = GET(*where);
    if (old == UINT64_MAX)
        return; /* this way is not taken again */
    SET(*where, mean(old, old > 0 && ns > MOST_GROWTH * old ? MOST_GROWTH * old : ns));
}

/* The worse of two ways is tried again for a window of regions in sequence.  Regions are timed in
 * the second half of a window: by then a sleeping core has come to help, or a core that is not
 * needed has gone to sleep.  One window of 32 is for trials; one of 512 if the way is much worse,
 * one of 4 if its time is not known. */
enum { ALONE_WINDOW = 2048, APART_WINDOW = 128 };

static bool is_second_half (uint32_t epoch, uint32_t window)
{
    return epoch % window >= window / 2;
}

static bool is_for_trial (uint32_t epoch, uint32_t window, uint32_t one_of)
{
    enum { NOT_THE_FIRST = 5 }; /* the second window is one of four, the first is none */
    return ((epoch / window + NOT_THE_FIRST) * UINT32_C(0x9e3779b1) >> 16) % one_of == 0;
}

/* Is this region to go the first of two ways?  first_ns, second_ns: what they take; 0: not known.  The first one is
 * the better one up to most_ns. */
static bool goes_first_way (uint64_t first_ns, uint64_t second_ns, uint64_t most_ns, uint32_t epoch, uint32_t window)
{
    bool known = first_ns > 0 && second_ns > 0, better = known && first_ns <= most_ns;
    uint64_t worse_ns = better ? second_ns : first_ns, better_ns = better ? first_ns : second_ns;
    uint32_t one_of = !known ? 4 : worse_ns < better_ns + better_ns / 4 ? 32 : 512;
    return better != is_for_trial(epoch, window, one_of);
}

/* The first caller searches.  That takes time, so the region of a master that does is not timed. */
static bool has_loops (struct gomp_history *h, struct gomp_region *region)
{
    if (GET(h->loops) == GOMP_NOT_SEARCHED) {
        SET(h->loops, gomp_loops_near(region->start.fn));
        region->began_ns = 0;
    }
    return GET(h->loops) != GOMP_NO_LOOPS;
}

enum gomp_yields gomp_history_yields (void (*fn) (void *), uint32_t epoch)
{
    enum { ENOUGH = 256 }; /* some 0.2 ms */
    struct gomp_history *h = gomp_history_of(fn);
    enum gomp_yields yields = GET(h->yields);
    if (yields != GOMP_YIELDS_UNKNOWN)
        return yields;
    if (GET(h->loops) == GOMP_NOT_SEARCHED)
        SET(h->loops, gomp_loops_near(fn));
    uint64_t yielded = GET(h->yielded), calls = (uint32_t)yielded == epoch ? (yielded >> 32) + 1 : 1;
    SET(h->yielded, calls << 32 | epoch);
    if (GET(h->loops) == GOMP_YIELDING_LOOPS)
        yields = GOMP_YIELDS_KNOWN;
    else if (calls < ENOUGH)
        return GOMP_YIELDS_UNKNOWN;
    else {
        yields = GOMP_YIELDS_SEEN;
        SET(h->patience_ns, 0);
        SET(h->suspicion, GOMP_SPINS);
    }
    SET(h->yields, yields);
    return yields;
}

bool gomp_history_spins (struct gomp_history *h, struct gomp_region *region)
{
    if (GET(h->yields) == GOMP_YIELDS_KNOWN)
        return false;
    enum gomp_suspicion suspicion = GET(h->suspicion);
    if (suspicion != GOMP_SPINS && GET(h->stalled) && has_loops(h, region)) {
        SET(h->patience_ns, 0);
        SET(h->suspicion, suspicion = GOMP_SPINS);
    }
    return suspicion == GOMP_SPINS;
}

bool gomp_history_prefers_alone (struct gomp_history *h, struct gomp_region *region)
{
    uint64_t core_ns = GET(h->core_ns), shared_ns = GET(h->shared_ns), alone_ns = GET(h->alone_ns);
    uint64_t most_ns = shared_ns - shared_ns / ALONE_GAIN;
    if (core_ns == 0 || core_ns > ALONE_MOST_NS || alone_ns == UINT64_MAX ||
        !goes_first_way(alone_ns, shared_ns, most_ns, GET(region->epoch), ALONE_WINDOW))
        return false;
    return !has_loops(h, region);
}

/* Also if that takes a little longer: neighbouring implicit tasks have one core, and its cache,
 * then. */
bool gomp_history_prefers_apart (const struct gomp_history *h, const struct gomp_region *region)
{
    uint64_t task_ns = gomp_history_task_ns(h, region->start.nthreads), in_order_ns = GET(h->in_order_ns);
    return task_ns > 0 && task_ns <= APART_MOST_NS && GET(h->suspicion) == GOMP_UNKNOWN &&
           GET(h->apart_ns) != UINT64_MAX &&
           goes_first_way(GET(h->apart_ns), in_order_ns, in_order_ns + in_order_ns / 32, GET(region->epoch),
                          APART_WINDOW);
}

void gomp_history_alone_stalls (void (*fn) (void *))
{
    SET(gomp_history_of(fn)->alone_ns, UINT64_MAX);
}

void gomp_history_apart_stalls (void (*fn) (void *))
{
    SET(gomp_history_of(fn)->apart_ns, UINT64_MAX);
}

/* Adds the time of a region in which all cores could take part to that of the order that it had. */
static void add_order_duration (struct gomp_history *h, struct gomp_region *region, uint64_t ns)
{
    if (!GET(region->order_is_chosen) || !is_second_half(GET(region->epoch), APART_WINDOW))
        return;
    add_duration(GET(region->tickets.apart) ? &h->apart_ns : &h->in_order_ns, ns);
}

void gomp_history_region_ends (struct gomp_region *region)
{
    unsigned n = region->start.nthreads;
    uint64_t sleeps = GET(region->sleeps);
    enum gomp_inside inside = GET(region->waited) ? GOMP_WAITS : GOMP_NEVER_WAITS;
    if (region->elastic && inside > region->inside)
        SET(gomp_history_of(region->start.fn)->inside, inside);
    if (sleeps == 0 && region->began_ns == 0)
        return;
    unsigned cores = gomp_cores_at_hand();
    struct gomp_history *h = gomp_history_of(region->start.fn);
    if (region->began_ns != 0) {
        uint64_t ns = inv_now_ns() - region->began_ns;
        bool alone = GET(region->tickets.alone);
        if (is_second_half(GET(region->epoch), ALONE_WINDOW))
            add_duration(alone ? &h->alone_ns : &h->shared_ns, ns);
        if (region->elastic && !alone)
            add_order_duration(h, region, ns);
        add_duration(&h->core_ns, alone ? ns : ns * (cores < n ? cores : n));
    }
    if (n <= cores)
        return; /* says nothing of what a larger team would do */
    uint64_t waits = mean(GET(h->waits), sleeps * GOMP_WAITS_ONE / n);
    SET(h->waits, waits < UINT32_MAX ? (uint32_t)waits : UINT32_MAX);
}
