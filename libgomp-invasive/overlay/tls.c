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
#include "context.h"
#include "objects.h"
#include <libinvasive/environment.h>
#include <dlfcn.h>
#include <link.h>
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

/* Objects whose thread-local data is of the call that uses it, or is taken along (context.c): the C, C++
 * and Fortran libraries, libraries for numbers, ours, and MPI's with what it is linked with. */
static bool keeps_nothing_for_callers (const struct dl_phdr_info *info)
{
    static const char *const beginnings[] = {
        "ld-linux", "libc.", "libstdc++", "libgfortran", "libquadmath", "libgomp", "libinvasive",
        "libmpi",   "libuc", "libnuma",   "libudev",     "libsystemd",  "librdmacm", "libgnutls",
        "libp11-",  "libopenblas", "libblas", "libfabric", "libpmix", "libopen-"};
    const char *name = gomp_object_name(info);
    for (unsigned i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* Does the object tie what runs to its kernel thread, by thread-local data, or by functions on the
 * stack, for which only stacks of kernel threads may be executable? */
static int ties_to_thread (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    bool data = gomp_object_segment(info, PT_TLS) && !keeps_nothing_for_callers(info);
    bool code = false;
    for (int i = 0; i < info->dlpi_phnum; i++)
        code = code || (info->dlpi_phdr[i].p_type == PT_GNU_STACK &&
                        (info->dlpi_phdr[i].p_flags & PF_X));
    *(bool *)found = data || code;
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
    MOVABLE, /* an implicit task may go on on another kernel thread */
    ELASTIC, /* it may begin on any, and stays there */
    STRICT
};

static int decide (void)
{
    const char *wish = inv_getenv("INVASIVE_BIND");
    if (wish && strcmp(wish, "strict") == 0)
        return STRICT;
    bool found = false;
    dl_iterate_phdr(has_own_tls, &found);
    if (found)
        return wish && strcmp(wish, "elastic") == 0 ? ELASTIC : STRICT;
    dl_iterate_phdr(ties_to_thread, &found);
    return found ? ELASTIC : MOVABLE;
}

bool gomp_has_thread_data (void)
{
    return decide() == STRICT;
}

/* The last of the objects that the process was started with, which are never unloaded; NULL: we have
 * been loaded later ourselves.  Written when the library is loaded. */
static struct link_map *last_at_start;

void gomp_tls_loaded (void)
{
    const char *preloaded = inv_getenv("LD_PRELOAD");
    void *program = preloaded && strstr(preloaded, "libgomp.so.1") ? dlopen(NULL, RTLD_LAZY) : NULL;
    struct link_map *map = NULL;
    if (program && dlinfo(program, RTLD_DI_LINKMAP, &map) == 0)
        while (map->l_next)
            map = map->l_next;
    last_at_start = map;
    if (program)
        dlclose(program);
}

/* May an object have been loaded since?  The loader is asked under a lock, for some 40 ns, which are
 * many for short regions: so only where anything has been loaded since the start.  (The loader appends
 * to its list; relaxed: a region that needs the object begins after it has been loaded.) */
static bool may_be_new (void)
{
    return !last_at_start || __atomic_load_n(&last_at_start->l_next, __ATOMIC_RELAXED);
}

/* Once strict, always: a pool whose threads have kept data cannot go back. */
static _Atomic int decision;

bool gomp_movable_threads (void)
{
    return atomic_load_explicit(&decision, memory_order_relaxed) == MOVABLE;
}

bool gomp_strict_threads (void)
{
    static _Atomic unsigned long long loads_seen;
    int now = atomic_load_explicit(&decision, memory_order_relaxed);
    if (now == STRICT)
        return true;
    if (now != UNKNOWN && !may_be_new())
        return false;
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (now != UNKNOWN && loads == loads_seen)
        return false;
    atomic_store_explicit(&loads_seen, loads, memory_order_relaxed);
    now = decide();
    if (now == MOVABLE)
        gomp_contexts_find_exceptions();
    atomic_store_explicit(&decision, now, memory_order_relaxed);
    return now == STRICT;
}
