/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tls.c - finding thread-local storage in the loaded objects (tls.h).
 *
 * GCC makes threadprivate variables thread-local ones.  Their values belong to a thread number for
 * the whole run.  So if there are any, implicit task i stays on kernel thread i.  OpenMP promises
 * that to code that is compiled for OpenMP.  Thread-local data of other libraries (errno, a driver's)
 * belongs to the kernel thread and does not count.  What counts is an object that has a TLS segment
 * and is linked with libgomp.
 */
#define _GNU_SOURCE
#include "tls.h"
#include "context.h"
#include "objects.h"
#include <libinvasive/base/environment.h>
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_own_tls (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    /* (libgomp may have a longer name, as packages bundle it.) */
    *(bool *)found = gomp_object_segment(info, PT_TLS) && gomp_object_needs(info, "libgomp");
    return *(bool *)found;
}

/* Plugins of hwloc and MPI, which load drivers to look at the machine, and those drivers that OpenCL's loader
 * loads in turn, known by a function that it calls.  (pipe_: what Mesa's driver loads.) */
static bool is_plugin (const struct dl_phdr_info *info)
{
    static const char *const beginnings[] = {"hwloc_",           "mca_",      "libpocl", "libnvidia-opencl",
                                             "libamdocl", "libigdrcl", "pipe_", NULL};
    return gomp_object_begins_with(info, beginnings) || gomp_object_defines(info, "clIcdGetPlatformIDsKHR");
}

/* An object, by name, and how many more objects may stand between it and a plugin. */
struct need {
    const char *name;
    unsigned depth;
    bool of_plugin, of_others;
};

static bool is_of_plugin (const struct dl_phdr_info *info, unsigned depth);

static int find_need (struct dl_phdr_info *info, size_t size, void *arg)
{
    struct need *need = arg;
    (void)size;
    if (gomp_object_needs(info, need->name))
        *(is_plugin(info) || is_of_plugin(info, need->depth) ? &need->of_plugin : &need->of_others) = true;
    return need->of_others;
}

/* Has a plugin brought the object, by itself or as what one of its objects is linked with, and is nothing of the
 * program linked with it? */
static bool is_of_plugin (const struct dl_phdr_info *info, unsigned depth)
{
    struct need need = {.name = gomp_object_name(info), .depth = depth - 1};
    if (depth == 0)
        return false;
    dl_iterate_phdr(find_need, &need);
    return need.of_plugin && !need.of_others;
}

/* Is the object one whose thread-local data is used within a call only, or saved by a switch
 * (context.c)?  These are the C, C++ and Fortran libraries, the compiler's (which has some since
 * GCC 14, see keeps_data_of_threads), numerical libraries, the project's, MPI's with what it is
 * linked with, plugins, and what only plugins use. */
static bool keeps_nothing_for_callers (const struct dl_phdr_info *info)
{
    enum { DEPTH = 4 };
    static const char *const beginnings[] = {
        "ld-linux", "libc.", "libgcc_s.", "libstdc++", "libgfortran", "libquadmath", "libgomp",
        "libinvasive", "libmpi", "libuc", "libnuma", "libudev", "libsystemd", "librdmacm", "libgnutls",
        "libp11-", "libopenblas", "libblas", "libfabric", "libpmix", "libopen-", NULL};
    return gomp_object_begins_with(info, beginnings) || is_plugin(info) ||
           is_of_plugin(info, DEPTH);
}

/* Does the object, compiled for OpenMP, tie data to kernel threads in other ways: thread-specific
 * data, mutexes that know their owner, or nested functions whose trampolines are in a list of the
 * kernel thread? */
static bool keeps_data_of_threads (const struct dl_phdr_info *info)
{
    static const char *const names[] = {"pthread_setspecific", "tss_set", "pthread_mutexattr_settype",
                                        "__gcc_nested_func_ptr_created", NULL};
    return gomp_object_needs(info, "libgomp") && !keeps_nothing_for_callers(info) &&
           gomp_object_uses(info, names);
}

/* Does the object tie an implicit task to its kernel thread: by such data, by thread-local data, or
 * by functions on the stack, which are not executable on the stack of a context? */
static int ties_to_thread (struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    bool data = gomp_object_segment(info, PT_TLS) && !keeps_nothing_for_callers(info);
    bool code = false;
    for (int i = 0; i < info->dlpi_phnum; i++)
        code = code || (info->dlpi_phdr[i].p_type == PT_GNU_STACK &&
                        (info->dlpi_phdr[i].p_flags & PF_X));
    *(bool *)found = data || code || keeps_data_of_threads(info);
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
    MOVABLE, /* an implicit task may continue on another kernel thread */
    ELASTIC, /* it may begin on any, and stays there: as INVASIVE_BIND=elastic says, */
    STAYS,   /* or because of what the process has loaded */
    STRICT   /* implicit task i is always on kernel thread i */
};

static int decide_binding (void)
{
    const char *setting = inv_getenv("INVASIVE_BIND");
    if (setting && strcmp(setting, "strict") == 0)
        return STRICT;
    bool found = false;
    dl_iterate_phdr(has_own_tls, &found);
    if (found)
        return setting && strcmp(setting, "elastic") == 0 ? ELASTIC : STRICT;
    dl_iterate_phdr(ties_to_thread, &found);
    return !found ? MOVABLE : setting && strcmp(setting, "elastic") == 0 ? ELASTIC : STAYS;
}

bool gomp_may_move_threads (void)
{
    return decide_binding() == MOVABLE && gomp_contexts_usable();
}

static struct {
    /* The last of the objects that the process was started with, which are never unloaded; NULL:
     * not known, since this library was not preloaded.  Written when the library is loaded. */
    struct link_map *last_at_start;
    /* Written by masters.  Once strict, always: a pool whose threads have kept data cannot go back. */
    _Atomic int decision;
    _Atomic int asked; /* the decision that gomp_ties_are_new was last called with; by any thread */
    _Atomic unsigned long long loads; /* of objects, when `decision` was made; written by masters */
} ties;

void gomp_tls_loaded (void)
{
    const char *preloaded = inv_getenv("LD_PRELOAD");
    void *program = preloaded && strstr(preloaded, "libgomp.so.1") ? dlopen(NULL, RTLD_LAZY) : NULL;
    struct link_map *map = NULL;
    if (program && dlinfo(program, RTLD_DI_LINKMAP, &map) == 0)
        while (map->l_next)
            map = map->l_next;
    ties.last_at_start = map;
    if (program)
        dlclose(program);
}

/* May an object have been loaded since the decision?  To ask the dynamic linker takes a lock and
 * some 40 ns, which are many for short regions.  So it is asked only if anything has been loaded
 * since the start.  (The dynamic linker appends to its list; relaxed: a region that needs the
 * object begins after it has been loaded.) */
static bool may_be_new (void)
{
    return !ties.last_at_start || __atomic_load_n(&ties.last_at_start->l_next, __ATOMIC_RELAXED);
}

bool gomp_movable_threads (void)
{
    return atomic_load_explicit(&ties.decision, memory_order_relaxed) == MOVABLE;
}

bool gomp_threads_stay (void)
{
    return atomic_load_explicit(&ties.decision, memory_order_relaxed) == STAYS;
}

bool gomp_strict_threads (void)
{
    int now = atomic_load_explicit(&ties.decision, memory_order_relaxed);
    if (now == STRICT)
        return true;
    if (now != UNKNOWN && !may_be_new())
        return false;
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (now != UNKNOWN && loads == ties.loads)
        return false;
    atomic_store_explicit(&ties.loads, loads, memory_order_relaxed);
    now = decide_binding();
    if (now == MOVABLE)
        gomp_contexts_find_exceptions();
    atomic_store_explicit(&ties.decision, now, memory_order_relaxed);
    return now == STRICT;
}

bool gomp_ties_are_new (void)
{
    int now = atomic_load_explicit(&ties.decision, memory_order_relaxed);
    return now != atomic_load_explicit(&ties.asked, memory_order_relaxed) &&
           atomic_exchange_explicit(&ties.asked, now, memory_order_relaxed) != now;
}

struct tie {
    int (*ties) (struct dl_phdr_info *, size_t, void *);
    char *name;
    size_t bytes;
};

static int find_tie (struct dl_phdr_info *info, size_t size, void *arg)
{
    struct tie *tie = arg;
    bool found = false;
    if (tie->ties(info, size, &found))
        snprintf(tie->name, tie->bytes, "%s", gomp_object_name(info));
    return found;
}

/* What keeps implicit tasks on their kernel threads, other than an object; NULL: nothing. */
static const char *other_tie (int now)
{
    const char *setting = inv_getenv("INVASIVE_BIND");
    if (setting && strcmp(setting, now == STRICT ? "strict" : "elastic") == 0 && now != MOVABLE)
        return "INVASIVE_BIND";
    return now == MOVABLE ? gomp_contexts_hindrance() : NULL;
}

bool gomp_what_ties_threads (char *name, size_t bytes)
{
    int now = atomic_load_explicit(&ties.decision, memory_order_relaxed);
    const char *other = now == UNKNOWN ? NULL : other_tie(now);
    struct tie tie = {now == STRICT ? has_own_tls : ties_to_thread, name, bytes};
    if (other) {
        snprintf(name, bytes, "%s", other);
        return true;
    }
    return (now == STRICT || now == STAYS) && dl_iterate_phdr(find_tie, &tie);
}

static int binds_threads (struct dl_phdr_info *info, size_t size, void *found)
{
    static const char *const names[] = {"pthread_setaffinity_np", "sched_setaffinity", NULL};
    (void)size;
    *(bool *)found = strncmp(gomp_object_name(info), "libinvasive", 11) != 0 &&
                     gomp_object_needs(info, "libgomp.so.1") && gomp_object_uses(info, names);
    return *(bool *)found;
}

bool gomp_program_binds_threads (void)
{
    bool found = false;
    dl_iterate_phdr(binds_threads, &found);
    return found;
}
