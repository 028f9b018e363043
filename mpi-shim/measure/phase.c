/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * phase.c - finds a program's iterations in the sequence of its synchronising calls.
 *
 * In two steps.  First a period p is searched, such that every call is at the site of the call p
 * calls before it.  When a call breaks the present guess, the next guess is the number of calls
 * since its site was passed last.  A guess is accepted after two whole repetitions, of six calls at
 * least.  (That periods are the sign of iterations is the idea
 * of Freitag, Corbalan and Labarta's dynamic periodicity detector.)
 *
 * Then one site of the period becomes the marker, the one that is passed least often in it, and
 * iterations are what lies between two passes of the marker, whatever else is called there.  So a
 * longer step now and then, an output, a solver that takes more or fewer inner steps do not end the
 * recognition: they are iterations of another class, told apart by the set of the sites that they
 * go through.
 *
 * The innermost loop is found first.  If its iterations are too short to measure, workload.c asks
 * for longer ones.  Then the marker becomes a site that only some of the iterations have passed:
 * such a site belongs to an outer loop.  A pass of the marker costs a look-up and a compare.
 */
#include "mpi-shim/measure/phase.h"
#include "libinvasive/base/assertion.h"

#include <string.h>

enum { COMINGS = 3, LEAST_CALLS = 6 };

static bool set_has(const struct shim_phase_set *set, unsigned site)
{
    return set->bits[site / 64] >> site % 64 & 1;
}

static inline void set_include(struct shim_phase_set *set, unsigned site)
{
    set->bits[site / 64] |= UINT64_C(1) << site % 64;
}

/* The call site's number.  All sites for which there is no number have the last one. */
static inline unsigned number_site(struct shim_phase *p, uint32_t key)
{
    unsigned i = key % SHIM_PHASE_HASHED;
    while (p->key[i] != key) {
        if (p->key[i] == 0) {
            if (p->sites == SHIM_PHASE_SITES)
                return SHIM_PHASE_SITES - 1;
            inv_assert(p->sites < SHIM_PHASE_SITES && key != 0);
            p->key[i] = key;
            p->number[i] = (uint8_t)p->sites++;
        } else
            i = (i + 1) % SHIM_PHASE_HASHED;
    }
    inv_assert(p->number[i] < p->sites);
    return p->number[i];
}

uint64_t shim_phase_hash(const struct shim_phase_set *set)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (unsigned i = 0; i < SHIM_PHASE_SITES / 64; i++) {
        h = (h ^ set->bits[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h | 1;
}

/* --- searching */

static uint8_t *history_at(struct shim_phase *p, uint32_t call)
{
    return &p->history[call % SHIM_PHASE_HISTORY];
}

/* How many of the latest calls, this one included, are at the site of the call `period`
 * before them; more than two periods do not matter. */
static uint32_t count_repeated(struct shim_phase *p, uint32_t now, uint32_t period)
{
    uint32_t n = 0;
    while (n < 2 * period && n + period <= now &&
           *history_at(p, now - n) == *history_at(p, now - n - period))
        n++;
    return n;
}

static void guess_period(struct shim_phase *p, uint32_t now, unsigned site)
{
    p->period = p->last[site] ? now - (p->last[site] - 1) : 0;
    if (p->period > SHIM_PHASE_PERIOD)
        p->period = 0;
    inv_assert(p->period <= SHIM_PHASE_PERIOD && p->period <= now);
    p->matched = p->period ? count_repeated(p, now, p->period) : 0;
}

/* The site of the last period that was passed least often; of several such sites the one that the
 * program has come to first. */
static unsigned choose_marker(struct shim_phase *p, uint32_t now)
{
    unsigned passes[SHIM_PHASE_SITES] = {0}, best = 0;
    for (uint32_t i = 0; i < p->period; i++)
        passes[*history_at(p, now - i)]++;
    for (unsigned s = 0; s < SHIM_PHASE_SITES; s++)
        if (passes[s] && (!passes[best] || passes[s] < passes[best]))
            best = s;
    return best;
}

static void set_marker(struct shim_phase *p, unsigned site)
{
    inv_assert(site < p->sites);
    p->marker = (int)site + 1;
    p->begun = false;
    p->bundle = p->left = 1;
    memset(p->comings, 0, sizeof p->comings);
}

static enum shim_phase_event search_period(struct shim_phase *p, unsigned site)
{
    uint32_t now = p->calls++;
    *history_at(p, now) = (uint8_t)site;
    if (p->period && *history_at(p, now - p->period) == site)
        p->matched++;
    else
        guess_period(p, now, site);
    p->last[site] = now + 1;
    if (p->period && p->matched >= 2 * p->period && p->matched >= LEAST_CALLS)
        set_marker(p, choose_marker(p, now));
    return SHIM_PHASE_NONE;
}

/* --- iterations */

/* Counts the sites that this iteration has passed and the one before has not. */
static void count_visits(struct shim_phase *p)
{
    if (!memcmp(&p->set, &p->ended, sizeof p->set))
        return;
    for (unsigned s = 0; s < p->sites; s++)
        if (set_has(&p->set, s) && !set_has(&p->ended, s) && p->comings[s] < UINT8_MAX)
            p->comings[s]++;
}

static enum shim_phase_event pass_marker(struct shim_phase *p)
{
    enum shim_phase_event event = p->begun ? SHIM_PHASE_END : SHIM_PHASE_BEGIN;
    if (p->begun) {
        count_visits(p);
        p->ended = p->set;
    }
    p->begun = true;
    p->left = p->bundle;
    p->set = (struct shim_phase_set){{0}};
    inv_assert(p->marker > 0 && p->left > 0);
    set_include(&p->set, (unsigned)p->marker - 1);
    if (event == SHIM_PHASE_BEGIN)
        p->ended = p->set; /* so that the other sites of the first iteration are counted once
                              only */
    return event;
}

enum shim_phase_event shim_phase_call(struct shim_phase *p, uint32_t key)
{
    unsigned site = number_site(p, key);
    if (!p->marker)
        return search_period(p, site);
    if (site + 1 != (unsigned)p->marker) {
        set_include(&p->set, site);
        return SHIM_PHASE_NONE;
    }
    inv_assert(p->left > 0 && p->left <= p->bundle);
    return --p->left ? SHIM_PHASE_NONE : pass_marker(p);
}

bool shim_phase_marks(struct shim_phase *p, uint32_t key)
{
    return number_site(p, key) + 1 == (unsigned)p->marker;
}

void shim_phase_lengthen(struct shim_phase *p)
{
    unsigned best = SHIM_PHASE_SITES;
    if (!p->marker)
        return;
    /* the site that comes and goes most often is of the next outer loop */
    for (unsigned s = 0; s < p->sites; s++)
        if (p->comings[s] >= COMINGS &&
            (best == SHIM_PHASE_SITES || p->comings[s] > p->comings[best]))
            best = s;
    if (best != SHIM_PHASE_SITES)
        set_marker(p, best);
    else if (p->bundle < SHIM_PHASE_BUNDLE) {
        p->left += p->bundle;
        p->bundle *= 2;
        inv_assert(p->left <= p->bundle && p->bundle <= SHIM_PHASE_BUNDLE);
    }
}

void shim_phase_shorten(struct shim_phase *p)
{
    if (p->bundle > 1) {
        p->bundle /= 2;
        if (p->left > p->bundle)
            p->left = p->bundle;
        inv_assert(p->bundle >= 1);
    }
}

void shim_phase_forget(struct shim_phase *p)
{
    p->marker = 0;
    p->begun = false;
    p->period = p->matched = p->calls = 0;
    memset(p->last, 0, sizeof p->last);
}
