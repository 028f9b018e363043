/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tls.c - finding thread-local storage in the loaded objects (tls.h).
 *
 * gcc makes threadprivate variables thread-local ones.  Their values belong to a thread
 * number for the whole run, so where there are any, implicit task i has to stay with
 * kernel thread i.  OpenMP promises that to code that is compiled for OpenMP; thread-local
 * data of other libraries (errno, a driver's) belongs to the kernel thread and does not
 * count.  So: an object with a TLS segment that is linked with libgomp.
 */
#define _GNU_SOURCE
#include "tls.h"
#include "history.h"
#include "objects.h"
#include <libinvasive/environment.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int has_own_tls (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    /* whatever longer name it was bundled under */
    *(bool *)found = gomp_object_segment(info, PT_TLS) && gomp_object_needs(info, "libgomp");
    return *(bool *)found;
}

static int count_loads (struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

enum {
    UNKNOWN,
    MOVABLE, /* no thread-local data: an implicit task may go on on another kernel thread */
    ELASTIC, /* the user asks for it: it may begin on any, and stays there */
    STRICT
};

static int decide (void)
{
    const char *wish = inv_getenv("INVASIVE_BIND");
    if (wish && strcmp(wish, "strict") == 0)
        return STRICT;
    bool found = false;
    dl_iterate_phdr(has_own_tls, &found);
    if (!found)
        return MOVABLE;
    return wish && strcmp(wish, "elastic") == 0 ? ELASTIC : STRICT;
}

bool gomp_has_thread_data (void)
{
    return decide() == STRICT;
}

/* May the region that begins be the first that needs an object which has just been loaded?  The
 * loader is asked under a lock, for some 40 ns, which are many for regions that are known to be
 * short: of those, now and then. */
static bool may_be_new (void (*fn) (void *))
{
    enum { SHORT_NS = 5000, LOOK_EVERY = 16 };
    static _Atomic unsigned regions;
    const struct gomp_history *h = gomp_history_find(fn);
    uint64_t ns = h ? atomic_load_explicit(&h->core_ns, memory_order_relaxed) : 0;
    return ns == 0 || ns >= SHORT_NS ||
           atomic_fetch_add_explicit(&regions, 1, memory_order_relaxed) % LOOK_EVERY == 0;
}

/* Once strict, always: a pool whose threads have kept data cannot go back. */
static _Atomic int decision;

bool gomp_movable_threads (void)
{
    return atomic_load_explicit(&decision, memory_order_relaxed) == MOVABLE;
}

bool gomp_strict_threads (void (*fn) (void *))
{
    static _Atomic unsigned long long loads_seen;
    int now = atomic_load_explicit(&decision, memory_order_relaxed);
    if (now == STRICT)
        return true;
    if (now != UNKNOWN && !may_be_new(fn))
        return false;
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (now != UNKNOWN && loads == loads_seen)
        return false;
    atomic_store_explicit(&loads_seen, loads, memory_order_relaxed);
    now = decide();
    atomic_store_explicit(&decision, now, memory_order_relaxed);
    return now == STRICT;
}
