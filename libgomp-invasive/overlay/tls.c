/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tls.c - finding thread-local storage in the loaded objects (tls.h).
 *
 * gcc makes threadprivate variables thread-local ones.  Their values belong to a thread
 * number for the whole run, so where there are any, implicit task i has to stay with
 * kernel thread i.  The run-time libraries' own thread-local data (errno and the like)
 * belongs to the kernel thread and does not count.
 */
#define _GNU_SOURCE
#include "tls.h"
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Libraries whose thread-local data is not the program's, by the start of their name. */
static const char *const system_libraries[] = {
    "ld-linux", "libc.so", "libc-", "libm.so", "libpthread", "librt.so", "libdl.so",
    "libgcc_s", "libstdc++", "libgomp", "libinvasive", "libgfortran", "libquadmath",
    "libmpi", "libmpich", "libmpl", "libopen-", "libpmix", "libprrte", "libhwloc", "libuc",
    "libfabric", "libevent", "libnuma", "libudev", "libcap", "libz.so", "libasan", "libubsan",
    "libtsan", "linux-vdso", "libjemalloc", "libtcmalloc", "libpython", "libslurm",
};

static bool is_system (const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof system_libraries / sizeof *system_libraries; i++)
        if (strncmp(name, system_libraries[i], strlen(system_libraries[i])) == 0)
            return true;
    return false;
}

static int has_own_tls (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (info->dlpi_name && is_system(info->dlpi_name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_phdr[i].p_memsz > 0)
            *(bool *)found = true;
    return *(bool *)found;
}

static int count_loads (struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

enum { UNKNOWN, ELASTIC, STRICT };

static int decide (void)
{
    const char *wish = getenv("INVASIVE_BIND");
    if (wish && strcmp(wish, "strict") == 0)
        return STRICT;
    if (wish && strcmp(wish, "elastic") == 0)
        return ELASTIC;
    bool found = false;
    dl_iterate_phdr(has_own_tls, &found);
    return found ? STRICT : ELASTIC;
}

bool gomp_strict_threads (void)
{
    /* Once strict, always: a pool whose threads have kept data cannot go back. */
    static _Atomic int decision;
    static _Atomic unsigned long long loads_seen;
    static _Atomic unsigned calls;
    int now = atomic_load_explicit(&decision, memory_order_relaxed);
    if (now == STRICT)
        return true;
    /* dl_iterate_phdr takes a lock: look for new objects now and then only. */
    unsigned n = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (now == ELASTIC && n % 256 != 0)
        return false;
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (now == ELASTIC && loads == loads_seen)
        return false;
    atomic_store_explicit(&loads_seen, loads, memory_order_relaxed);
    now = decide();
    atomic_store_explicit(&decision, now, memory_order_relaxed);
    return now == STRICT;
}
