/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * use.c - what is known of this process's use of OpenMP (use.h).
 */
#include "libgomp.h"
#include "use.h"
#include <stdatomic.h>

static struct {
    bool loaded;                   /* written by the thread that loads the library */
    _Atomic bool by_further_threads; /* set by the first such thread, relaxed: a hint */
} use;

bool gomp_use_loading (void)
{
    return !use.loaded;
}

void gomp_use_is_loaded (void)
{
    use.loaded = true;
}

bool gomp_use_has_further_threads (void)
{
    return atomic_load_explicit(&use.by_further_threads, memory_order_relaxed);
}

void gomp_use_add_further_threads (void)
{
    atomic_store_explicit(&use.by_further_threads, true, memory_order_relaxed);
}
