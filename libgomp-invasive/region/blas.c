/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * blas.c - see blas.h.
 */
#define _GNU_SOURCE
#include "blas.h"
#include "objects.h"
#include <dlfcn.h>
#include <libinvasive/base/environment.h>
#include <libinvasive/base/uncancelled.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gomp_blas gomp_blas;

struct search {
    unsigned long long before, now; /* objects loaded since the process began */
    unsigned found;
    char *name[GOMP_BLAS_COPIES]; /* malloc */
};

/* Returns 1, which ends the iteration, if no object is new. */
static int collect_copies (struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const beginnings[] = {"libopenblas", "libscipy_openblas", NULL};
    struct search *search = arg;
    (void)size;
    search->now = info->dlpi_adds;
    if (search->now == search->before)
        return 1;
    if (gomp_object_begins_with(info, beginnings) && search->found < GOMP_BLAS_COPIES)
        if ((search->name[search->found] = strdup(info->dlpi_name)) != NULL)
            search->found++;
    return 0;
}

/* A function of this copy; Python packages add to its name. */
static void *function_of (void *copy, const char *name)
{
    static const char *const around[][2] = {{"", ""}, {"", "64_"}, {"scipy_", ""}, {"scipy_", "64_"}};
    void *function = NULL;
    for (size_t i = 0; i < sizeof around / sizeof around[0] && !function; i++) {
        char whole[64];
        snprintf(whole, sizeof whole, "%s%s%s", around[i][0], name, around[i][1]);
        function = dlsym(copy, whole);
    }
    return function;
}

/* Adds the copy, if it computes with POSIX threads.  The caller has set `searching`. */
static void add (const char *name)
{
    enum { POSIX_THREADS = 1 }; /* of openblas_get_parallel */
    unsigned n = atomic_load_explicit(&gomp_blas.copies, memory_order_relaxed);
    void *copy = n < GOMP_BLAS_COPIES ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    if (!copy)
        return;
    int (*parallel) (void) = (int (*) (void))function_of(copy, "openblas_get_parallel");
    gomp_blas.copy[n].get = (int (*) (void))function_of(copy, "openblas_get_num_threads");
    gomp_blas.copy[n].set = (void (*) (int))function_of(copy, "openblas_set_num_threads");
    bool usable = parallel && parallel() == POSIX_THREADS && gomp_blas.copy[n].get && gomp_blas.copy[n].set;
    for (unsigned i = 0; i < n; i++)
        usable = usable && gomp_blas.copy[i].set != gomp_blas.copy[n].set;
    if (usable) /* release: partner is gomp_blas_restrict */
        atomic_store_explicit(&gomp_blas.copies, n + 1, memory_order_release);
    dlclose(copy);
}

void gomp_blas_search (void)
{
    struct search search = {.before = atomic_load_explicit(&gomp_blas.loaded, memory_order_relaxed)};
    if (atomic_exchange_explicit(&gomp_blas.searching, true, memory_order_acquire))
        return; /* acquire, and the release below: one search after another writes the copies */
    INV_UNCANCELLED;
    dl_iterate_phdr(collect_copies, &search);
    bool chosen = inv_getenv("OPENBLAS_NUM_THREADS") || inv_getenv("GOTO_NUM_THREADS");
    for (unsigned i = 0; i < search.found; i++) {
        if (!chosen)
            add(search.name[i]);
        free(search.name[i]);
    }
    atomic_store_explicit(&gomp_blas.loaded, search.now, memory_order_relaxed);
    atomic_store_explicit(&gomp_blas.searching, false, memory_order_release);
}

unsigned gomp_blas_restrict (void)
{
    unsigned restricted = 0, copies = atomic_load_explicit(&gomp_blas.copies, memory_order_acquire);
    for (unsigned i = 0; i < copies; i++) {
        int threads = gomp_blas.copy[i].get();
        if (threads <= 1)
            continue;
        atomic_store_explicit(&gomp_blas.copy[i].threads, threads, memory_order_relaxed);
        gomp_blas.copy[i].set(1);
        restricted |= 1U << i;
    }
    return restricted;
}

void gomp_blas_release (unsigned restricted)
{
    for (unsigned i = 0; restricted != 0; i++, restricted >>= 1)
        if ((restricted & 1) && gomp_blas.copy[i].get() == 1)
            gomp_blas.copy[i].set(atomic_load_explicit(&gomp_blas.copy[i].threads, memory_order_relaxed));
}
