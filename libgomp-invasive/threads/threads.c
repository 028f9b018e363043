/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * threads.c - see threads.h.
 */
#include "threads.h"
#include <libinvasive/base/now.h>

struct gomp_thread_supply gomp_thread_supply;

void gomp_thread_refused (void)
{
    enum { REFUSED_NS = 10000000 }; /* a limit on threads is likely to last as long */
    atomic_store_explicit(&gomp_thread_supply.refused_until, inv_now_ns() + REFUSED_NS, memory_order_relaxed);
}

bool gomp_refused_lately (void)
{
    uint64_t until = atomic_load_explicit(&gomp_thread_supply.refused_until, memory_order_relaxed);
    return __builtin_expect(until != 0, 0) && inv_now_ns() < until;
}
