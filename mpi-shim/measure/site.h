/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * site.h - what call sites have shown so far: how long the program has waited there of late.  The wait
 * engine goes by it.  (Call-site statistics, for reports, are another thing: site_stats.h.)
 */
#ifndef SHIM_SITE_H
#define SHIM_SITE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* What a call site has shown so far.  Written without a lock by any thread: a hint. */
struct shim_site {
    _Atomic uint32_t log;   /* weighted mean of shim_log of its waits, in ticks */
    _Atomic uint32_t quick; /* since then, calls in a row that hardly waited */
    /* Of the measured thread: which call site was noted in which iteration (workload.c). */
    uint32_t noted;
    const void *where;
};
enum { SHIM_SITES = 1024 }; /* power of two */
extern struct shim_sites {
    struct shim_site site[SHIM_SITES];
    /* The last LATELY_US or so, and how much of it the rank has waited, in ticks.  Written by any
     * thread that has waited (add_wait); relaxed: a hint. */
    struct shim_lately {
        _Atomic uint64_t all, waited, end;
    } lately;
} shim_sites;

static inline struct shim_site *shim_site(const void *call_site)
{
    uint64_t key = (uint64_t)(uintptr_t)call_site * UINT64_C(0x9e3779b97f4a7c15);
    return &shim_sites.site[key >> 54];
}

/* The logarithm to base 2, in units of SHIM_LOG_ONE, and its inverse: exact for powers of two, linear in between. */
enum { SHIM_LOG_BITS = 8, SHIM_LOG_ONE = 1 << SHIM_LOG_BITS };

static inline uint32_t shim_log(uint64_t x)
{
    uint32_t power = 63 - (uint32_t)__builtin_clzll(x | 1);
    uint64_t mantissa = power >= SHIM_LOG_BITS ? x >> (power - SHIM_LOG_BITS) : x << (SHIM_LOG_BITS - power);
    return power << SHIM_LOG_BITS | ((uint32_t)mantissa & (SHIM_LOG_ONE - 1));
}

static inline uint64_t shim_exp(uint32_t log)
{
    uint32_t power = log >> SHIM_LOG_BITS;
    uint64_t mantissa = SHIM_LOG_ONE | (log & (SHIM_LOG_ONE - 1));
    return power >= SHIM_LOG_BITS ? mantissa << (power - SHIM_LOG_BITS) : mantissa >> (SHIM_LOG_BITS - power);
}

/* The expected length of the next wait, in ticks: the geometric mean of the site's waits, in which
 * one wait that a time slice prolonged has little weight.  Each quick call since takes a third off.
 * 0: not known, or next to nothing. */
static inline uint32_t shim_site_log(const struct shim_site *site)
{
    uint32_t quick = atomic_load_explicit(&site->quick, memory_order_relaxed);
    uint32_t log = atomic_load_explicit(&site->log, memory_order_relaxed);
    return quick < 2 * log / SHIM_LOG_ONE ? log - quick * (SHIM_LOG_ONE / 2) : 0;
}

static inline uint64_t shim_site_expects(const struct shim_site *site)
{
    uint32_t log = shim_site_log(site);
    return log > 0 ? shim_exp(log) : 0;
}

/* A wait at the site has lasted from start to end (ticks), which is now. */
void shim_site_learn(struct shim_site *site, uint64_t start, uint64_t end);
/* Has this rank waited for less than a third of the last time?  One that waits more has something to
 * lend. */
bool shim_waits_little(void);

#pragma GCC visibility pop
#endif
