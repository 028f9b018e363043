/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* site.c - see site.h. */
#include "mpi-shim/measure/site.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/measure/clock.h"

struct shim_sites shim_sites;

static void add_wait(uint64_t start, uint64_t end)
{
    enum { LATELY_US = 20000 };
    struct shim_lately *l = &shim_sites.lately;
    uint64_t since = end - atomic_exchange_explicit(&l->end, end, memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&l->all, memory_order_relaxed) + since;
    uint64_t waited = atomic_load_explicit(&l->waited, memory_order_relaxed) + (end - start);
    for (; all > LATELY_US * shim_clock.us; all /= 2)
        waited /= 2;
    atomic_store_explicit(&l->all, all, memory_order_relaxed);
    atomic_store_explicit(&l->waited, waited, memory_order_relaxed);
}

bool shim_waits_little(void)
{
    enum { PART = 3 };
    return PART * atomic_load_explicit(&shim_sites.lately.waited, memory_order_relaxed) <
           atomic_load_explicit(&shim_sites.lately.all, memory_order_relaxed);
}

/* A wait, and what quick calls have left of the mean, count as at least 1/LEAST_PART of a
 * microsecond. */
void shim_site_learn(struct shim_site *site, uint64_t start, uint64_t end)
{
    enum { LEAST_PART = 4 };
    uint32_t least = shim_log(shim_clock.us / LEAST_PART);
    uint32_t last = shim_log(end - start), mean = shim_site_log(site);
    inv_assert(site >= shim_sites.site && site < shim_sites.site + SHIM_SITES);
    bool first = atomic_load_explicit(&site->log, memory_order_relaxed) == 0;
    last = last > least ? last : least;
    mean = mean > least ? mean : least;
    atomic_store_explicit(&site->log, first ? last : mean - mean / 4 + last / 4, memory_order_relaxed);
    atomic_store_explicit(&site->quick, 0, memory_order_relaxed);
    add_wait(start, end);
}
