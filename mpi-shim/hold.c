/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* hold.c - see hold.h. */
#include "hold.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum state {
    IDLE,  /* no iterations, or long ones, whose waits are long themselves */
    OPEN,  /* both ways are tried in turns */
    KNOWN, /* one is better; the other one is tried now and then, */
    CLEAR, /* or seldom, where it is much worse */
};

enum {
    WINDOW_BITS = 24, /* ns: windows of 17 ms */
    /* Windows of which one is for each way. */
    KNOWN_WINDOWS = 64,
    CLEAR_WINDOWS = 512,
    AHEAD_WINDOWS = 4, /* for which idle threads are told at once */
    NEAR_WINDOWS = 4, /* apart at most: two windows whose iterations are compared */
    LEAST_COUNT = 3,  /* ends of iterations in a window that says something */
    LEAST_RATIOS = 4, /* before a way is chosen */
    MOST_VAIN = 4,    /* before both ways are taken to be the same */
};
#define LONGEST_NS (UINT64_C(1) << (WINDOW_BITS - 1))
/* Iterations that are so much shorter are worth it that cores are held: one that is lent may be of use
 * elsewhere.  And so much shorter or longer ones are clear. */
static const double WORTH = 0.97, CLEARLY = 0.15;

static enum state state_of(uint32_t word)
{
    return (enum state)(word >> 1);
}

static uint32_t word_of(enum state state, enum shim_hold_way better)
{
    return (uint32_t)state << 1 | (uint32_t)better;
}

static uint64_t window_at(uint64_t ns)
{
    return ns >> WINDOW_BITS;
}

static enum shim_hold_way way_in(uint32_t word, uint64_t window)
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
    return (enum shim_hold_way)(word & 1);
}

enum shim_hold_way shim_hold_way(uint32_t word, uint64_t ns)
{
    return way_in(word, window_at(ns));
}

uint64_t shim_hold_until(uint32_t word, uint64_t ns)
{
    uint64_t now = window_at(ns), window = now;
    while (window < now + AHEAD_WINDOWS && way_in(word, window) == SHIM_HOLDS)
        window++;
    return window > now ? window << WINDOW_BITS : 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median: other things interrupt iterations, too. */
static double median_ratio(const struct shim_hold *h)
{
    double sorted[SHIM_HOLD_RATIOS];
    unsigned n = h->ratios < SHIM_HOLD_RATIOS ? h->ratios : SHIM_HOLD_RATIOS;
    memcpy(sorted, h->ratio, sizeof sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static void choose_way(struct shim_hold *h, double latest)
{
    bool held = h->word & 1;
    if (state_of(h->word) == CLEAR && (held ? latest > 1 + CLEARLY : latest < 1 - CLEARLY)) {
        h->word = word_of(OPEN, SHIM_LENDS); /* the program does something else now */
        h->ratios = 0;
    }
    if (h->ratios < LEAST_RATIOS)
        return;
    double ratio = median_ratio(h);
    enum state state = ratio > 1 + CLEARLY || ratio < 1 - CLEARLY ? CLEAR : KNOWN;
    h->word = word_of(state, ratio < WORTH ? SHIM_HOLDS : SHIM_LENDS);
}

/* The window is over: compare it with one of the other way that was shortly before. */
static void end_window(struct shim_hold *h)
{
    if (h->count < LEAST_COUNT)
        return;
    enum shim_hold_way way = way_in(h->word, h->window);
    enum shim_hold_way other = way == SHIM_HOLDS ? SHIM_LENDS : SHIM_HOLDS;
    h->window_of[way] = h->window;
    h->mean_ns[way] = (double)(h->last_ns - h->first_ns) / (h->count - 1);
    if (!(h->mean_ns[other] > 0) || h->window - h->window_of[other] > NEAR_WINDOWS)
        return;
    double ratio = h->mean_ns[SHIM_HOLDS] / h->mean_ns[SHIM_LENDS];
    h->ratio[h->ratios++ % SHIM_HOLD_RATIOS] = ratio;
    h->mean_ns[SHIM_LENDS] = h->mean_ns[SHIM_HOLDS] = 0;
    choose_way(h, ratio);
}

uint32_t shim_hold_none(struct shim_hold *h)
{
    if (state_of(h->word) != IDLE && ++h->vain >= MOST_VAIN)
        *h = (struct shim_hold){0};
    return h->word;
}

/* What has been decided may change at an end only, so that between two of a window one way is gone. */
uint32_t shim_hold_iteration(struct shim_hold *h, uint64_t end_ns)
{
    uint64_t window = window_at(end_ns), ns = end_ns - h->last_ns;
    if (ns > LONGEST_NS)
        shim_hold_none(h);
    else {
        h->vain = 0;
        if (state_of(h->word) == IDLE)
            h->word = word_of(OPEN, SHIM_LENDS);
    }
    if (window != h->window || h->count == 0) {
        end_window(h);
        h->window = window;
        h->first_ns = end_ns;
        h->count = 0;
    }
    h->last_ns = end_ns;
    h->count++;
    return h->word;
}
