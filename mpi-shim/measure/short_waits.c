/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* short_waits.c - see short_waits.h. */
#include "mpi-shim/measure/short_waits.h"
#include "libinvasive/base/assertion.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum state {
    IDLE,  /* no iterations, or long ones, whose waits are long, too */
    OPEN,  /* both modes are tried in turns */
    KNOWN, /* one mode is better; the other one is tried now and then */
    CLEAR, /* one mode is much better; the other one is tried seldom */
};

enum {
    WINDOW_BITS = 24, /* ns: windows of 17 ms */
    /* Windows of which one is for each mode. */
    KNOWN_WINDOWS = 64,
    CLEAR_WINDOWS = 512,
    AHEAD_WINDOWS = 4, /* for so many windows idle threads are told the mode in advance */
    NEAR_WINDOWS = 4, /* largest distance of two windows whose iterations are compared */
    LEAST_COUNT = 3,  /* ends of iterations in a window whose mean length counts */
    LEAST_RATIOS = 4, /* ratios before a mode is chosen */
    MOST_LONG = 4,    /* long iterations, or times without one, before the state is IDLE */
};
#define LONGEST_NS (UINT64_C(1) << (WINDOW_BITS - 1))
/* Cores are held if iterations then take less than WORTH of their time with cores lent: a lent core
 * may be of use elsewhere.  The better mode is clear if the times differ by more than CLEARLY. */
static const double WORTH = 0.97, CLEARLY = 0.15;

static enum state state_of(uint32_t word)
{
    return (enum state)(word >> 1);
}

static uint32_t word_of(enum state state, enum shim_short_wait_mode better)
{
    return (uint32_t)state << 1 | (uint32_t)better;
}

static uint64_t window_at(uint64_t ns)
{
    return ns >> WINDOW_BITS;
}

static enum shim_short_wait_mode mode_in(uint32_t word, uint64_t window)
{
    enum state state = state_of(word);
    uint64_t windows = state == CLEAR ? CLEAR_WINDOWS : KNOWN_WINDOWS;
    if (state == IDLE)
        return SHIM_LENDS;
    if (state == OPEN)
        return window % 2 ? SHIM_HOLDS : SHIM_LENDS;
    if (window % windows == 0)
        return SHIM_HOLDS;
    if (window % windows == windows / 2)
        return SHIM_LENDS;
    return (enum shim_short_wait_mode)(word & 1);
}

enum shim_short_wait_mode shim_short_waits_mode(uint32_t word, uint64_t ns)
{
    return mode_in(word, window_at(ns));
}

uint64_t shim_short_waits_hold_until(uint32_t word, uint64_t ns)
{
    uint64_t now = window_at(ns), window = now;
    while (window < now + AHEAD_WINDOWS && mode_in(word, window) == SHIM_HOLDS)
        window++;
    return window > now ? window << WINDOW_BITS : 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median: other things interrupt iterations, too. */
static double median_ratio(const struct shim_short_waits *w)
{
    double sorted[SHIM_SHORT_WAIT_RATIOS];
    unsigned n = w->ratios < SHIM_SHORT_WAIT_RATIOS ? w->ratios : SHIM_SHORT_WAIT_RATIOS;
    inv_assert(n > 0);
    memcpy(sorted, w->ratio, sizeof sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static void choose_mode(struct shim_short_waits *w, double latest)
{
    bool held = w->word & 1;
    if (state_of(w->word) == CLEAR && (held ? latest > 1 + CLEARLY : latest < 1 - CLEARLY)) {
        w->word = word_of(OPEN, SHIM_LENDS); /* the program does something else now */
        w->ratios = 0;
    }
    if (w->ratios < LEAST_RATIOS)
        return;
    double ratio = median_ratio(w);
    enum state state = ratio > 1 + CLEARLY || ratio < 1 - CLEARLY ? CLEAR : KNOWN;
    w->word = word_of(state, ratio < WORTH ? SHIM_HOLDS : SHIM_LENDS);
}

/* Compares the window that is over with one of the other mode shortly before. */
static void end_window(struct shim_short_waits *w)
{
    if (w->count < LEAST_COUNT)
        return;
    enum shim_short_wait_mode mode = mode_in(w->word, w->window);
    enum shim_short_wait_mode other = mode == SHIM_HOLDS ? SHIM_LENDS : SHIM_HOLDS;
    w->window_of[mode] = w->window;
    w->mean_ns[mode] = (double)(w->last_ns - w->first_ns) / (w->count - 1);
    if (!(w->mean_ns[other] > 0) || w->window - w->window_of[other] > NEAR_WINDOWS)
        return;
    inv_assert(w->window >= w->window_of[other] && w->count > 1);
    double ratio = w->mean_ns[SHIM_HOLDS] / w->mean_ns[SHIM_LENDS];
    w->ratio[w->ratios++ % SHIM_SHORT_WAIT_RATIOS] = ratio;
    w->mean_ns[SHIM_LENDS] = w->mean_ns[SHIM_HOLDS] = 0;
    choose_mode(w, ratio);
}

uint32_t shim_short_waits_no_iteration(struct shim_short_waits *w)
{
    if (state_of(w->word) != IDLE && ++w->longs >= MOST_LONG)
        *w = (struct shim_short_waits){0};
    return w->word;
}

/* The decision changes at the end of an iteration only.  So all of an iteration is in one mode. */
uint32_t shim_short_waits_add_iteration(struct shim_short_waits *w, uint64_t end_ns)
{
    uint64_t window = window_at(end_ns), ns = end_ns - w->last_ns;
    if (ns > LONGEST_NS)
        shim_short_waits_no_iteration(w);
    else {
        w->longs = 0;
        if (state_of(w->word) == IDLE)
            w->word = word_of(OPEN, SHIM_LENDS);
    }
    if (window != w->window || w->count == 0) {
        end_window(w);
        w->window = window;
        w->first_ns = end_ns;
        w->count = 0;
    }
    w->last_ns = end_ns;
    w->count++;
    return w->word;
}
