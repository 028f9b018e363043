/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * site.h - the history of call sites, for the wait engine: how long the program has waited there of
 * late.  (Call-site statistics, for reports, are another thing: site_stats.h.)
 */
#ifndef SHIM_SITE_H
#define SHIM_SITE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The history of a call site, and of all others with the same hash. */
struct shim_site {
    /* Written without a lock by any thread that leaves a wait there (shim_site_learn; `quick` also
     * by shim_watch_over), and read by any that begins one.  relaxed, without a partner: hints, and
     * a lost update is one wait less that counts.
     *   log    weighted mean of shim_log of its waits, in ticks
     *   quick  calls in sequence since then that hardly waited */
    _Atomic uint32_t log, quick;
    /* Read and written by the measured thread only: which call site was noted in which iteration
     * (workload.c). */
    uint32_t noted;
    const void *where;
};
enum { SHIM_SITES = 1024 }; /* power of two */
extern struct shim_sites {
    struct shim_site site[SHIM_SITES];
    /* About the last LATELY_US of time, in ticks: its length, how much of it the rank has waited,
     * and its end.  Written by any thread that has waited (add_wait); relaxed: a hint. */
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

/* A wait at the site has lasted from `start` until now, `end` (ticks). */
void shim_site_learn(struct shim_site *site, uint64_t start, uint64_t end);
/* Has this rank waited for less than a third of the last LATELY_US?  A rank that waits more has
 * much core time to lend. */
bool shim_waits_little(void);

#pragma GCC visibility pop
#endif
