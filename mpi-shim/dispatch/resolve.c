/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * resolve.c - the dispatcher: finding the MPI library of this process at the first MPI
 * call, and the variant of the shim that speaks its binary interface.
 *
 * The dispatcher is preloaded into all programs of a launch and is linked to no MPI library.
 * The program brings one: it is linked to the library, or a plug-in or an interpreter loads
 * the library privately; then the object that makes the first call is linked to it.
 *
 * Why both MPI_X and PMPI_X: Open MPI's Fortran functions call PMPI_X, and so does a
 * profiler.  With entries of both kinds a call goes program -> profiler's MPI_X -> our
 * PMPI_X -> the library's PMPI_X, whether the profiler was preloaded or linked.  If a
 * library behind ours in the order of the dynamic linker defines MPI_X, our MPI_X calls
 * that one, which the program would call without us.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/complain.h"
#include "mpi-shim/dispatch/entry.h"
#include "libinvasive/base/environment.h"
#include "mpi-shim/dispatch/hook.h"
#include "libinvasive/process.h"
#include "libinvasive/base/uncancelled.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The MPI library of the process.  Written under the lock, at the first MPI call; wrap_all reads it
 * later, in set-up. */
static struct {
    pthread_mutex_t lock;
    bool resolving, resolved;
    char version[16384]; /* MPI_MAX_LIBRARY_VERSION_STRING of any library */
    void *handle;       /* dlopen's; it stays open: addresses in it are kept */
    void *scope;        /* where MPI_X is looked up for what the program would get */
    uintptr_t from, to; /* the library's addresses */
    /* The functions that are called without the shim: MPI_X is the next in search order, PMPI_X the
     * library's. */
    void *own[SHIM_LEVELS][SHIM_CALLS];
    void *guard[SHIM_CALLS];   /* the variant's; NULL: not wrapped */
    bool profiled[SHIM_CALLS]; /* the next MPI_X is not the MPI library's, but a profiler's */
} mpi = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* --- entries */

static void set_entry(enum shim_level level, int call, void *function)
{
    if (function)
        atomic_store_explicit(&shim_entry[level][call], function, memory_order_release);
}

static void set_call(int call, bool wrap)
{
    void *wrapper = wrap ? mpi.guard[call] : NULL;
    inv_assert(!wrapper || mpi.own[SHIM_PMPI][call]); /* which the wrapper calls */
    set_entry(SHIM_MPI, call, wrapper && !mpi.profiled[call] ? wrapper : mpi.own[SHIM_MPI][call]);
    set_entry(SHIM_PMPI, call, wrapper ? wrapper : mpi.own[SHIM_PMPI][call]);
}

/* Is this a function in which management begins, or a rank that is not managed tells so to the
 * others?  Its wrapper stays in force, since sessions may be opened again after the last one. */
static bool is_beginning(int call)
{
    return call == SHIM_CALL_Init || call == SHIM_CALL_Init_thread || call == SHIM_CALL_Finalize ||
           call == SHIM_CALL_Session_init || call == SHIM_CALL_Session_finalize ||
           call == SHIM_CALL_Comm_create_from_group ||
           call == SHIM_CALL_Intercomm_create_from_groups;
}

/* Called by the variant: from now on entries lead to the wrappers, or to the library's own
 * functions. */
static void wrap_all(bool wrap)
{
    for (int call = 0; call < SHIM_CALLS; call++)
        set_call(call, wrap || is_beginning(call));
}

/* --- the MPI library */

struct span {
    uintptr_t address, from, to;
};

/* For dl_iterate_phdr: notes the address range of the object that contains an address. */
static int has_address(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct span *span = arg;
    uintptr_t from = UINTPTR_MAX, to = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        from = start < from ? start : from;
        to = start + segment->p_memsz > to ? start + segment->p_memsz : to;
    }
    if (span->address < from || span->address >= to)
        return 0;
    span->from = from;
    span->to = to;
    return 1;
}

static bool is_ours(const void *address)
{
    struct span span = {.address = (uintptr_t)shim_resolve};
    dl_iterate_phdr(has_address, &span);
    return (uintptr_t)address >= span.from && (uintptr_t)address < span.to;
}

static void *object_of(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return NULL;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* Is the library that has this function the process's MPI library?  Names are looked up in
 * `scope`. */
static bool is_library_of(void *init, void *scope)
{
    struct span span = {.address = (uintptr_t)init};
    if (!init || is_ours(init) || !dl_iterate_phdr(has_address, &span))
        return false;
    mpi.handle = object_of(init);
    mpi.scope = scope;
    mpi.from = span.from;
    mpi.to = span.to;
    return mpi.handle != NULL;
}

/* For dl_iterate_phdr: finds an object whose file is called libmpi*, and that has PMPI_Init. */
static int is_mpi_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libmpi", 6) != 0)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    bool found = is_library_of(dlsym(library, "PMPI_Init"), library);
    dlclose(library);
    return found;
}

/* RTLD_NEXT means "after the object that calls dlsym", so it is called here. */
static void *find_function(void *scope, const char *name)
{
    return scope == RTLD_NEXT ? dlsym(RTLD_NEXT, name) : dlsym(scope, name);
}

/* In the order in which the dynamic linker would look: the program's libraries, those of the
 * object that makes this call, and at last whatever is loaded. */
static bool find_library(const void *caller)
{
    if (is_library_of(dlsym(RTLD_NEXT, "PMPI_Init"), RTLD_NEXT))
        return true;
    void *scope = object_of(caller);
    if (scope && is_library_of(dlsym(scope, "PMPI_Init"), scope))
        return true;
    if (scope)
        dlclose(scope);
    return dl_iterate_phdr(is_mpi_library, NULL) != 0;
}

static void find_own(void)
{
    for (int call = 0; call < SHIM_CALLS; call++) {
        const char *pmpi = shim_names[call], *name = pmpi + 1;
        void *next = find_function(mpi.scope, name);
        bool library = (uintptr_t)next >= mpi.from && (uintptr_t)next < mpi.to;
        if (!next || is_ours(next)) {
            next = dlsym(mpi.handle, name);
            library = true;
        }
        mpi.own[SHIM_MPI][call] = next;
        mpi.own[SHIM_PMPI][call] = dlsym(mpi.handle, pmpi);
        mpi.profiled[call] = !library;
    }
}

/* --- the variant */

/* The variant for Open MPI is linked with the library of this name and would load another one
 * where the process has none so called. */
static bool has_open_mpis_name(void)
{
    void *library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library == mpi.handle;
}

/* Which binary interface the library speaks; NULL: an unknown one. */
static const char *interface_name(void)
{
    int (*get_version)(char *, int *) = dlsym(mpi.handle, "PMPI_Get_library_version");
    int (*get_abi)(int *, int *) = dlsym(mpi.handle, "PMPI_Abi_get_version");
    int length = 0, major = -1, minor = -1;
    if (get_abi && get_abi(&major, &minor) == 0 && major > 0)
        return major == 1 ? "abi" : NULL;
    if (!get_version || get_version(mpi.version, &length) != 0)
        return NULL;
    mpi.version[sizeof mpi.version - 1] = '\0';
    if (strstr(mpi.version, "Open MPI"))
        return has_open_mpis_name() ? "openmpi" : NULL;
    if (strstr(mpi.version, "MPICH") || strstr(mpi.version, "MVAPICH") ||
        strstr(mpi.version, "Intel(R) MPI"))
        return "mpich";
    return NULL;
}

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
    char text[400], line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    inv_write_stderr(line, (size_t)snprintf(line, sizeof line, "invasive: %s.\n", text));
}

static void say_unmanaged(const char *why)
{
    const char *rank = inv_getenv("PMI_RANK") ? inv_getenv("PMI_RANK") : inv_getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || strcmp(rank, "0") == 0)
        complain("%s; the waits of MPI are not managed", why);
}

/* The variant lies in the dispatcher's directory. */
static struct shim_variant *load_variant(void)
{
    const char *interface = interface_name();
    Dl_info us;
    char path[PATH_MAX];
    if (!interface) {
        say_unmanaged("this MPI library has a binary interface that is not known here");
        return NULL;
    }
    if (!dladdr((void *)shim_resolve, &us))
        return NULL;
    const char *slash = strrchr(us.dli_fname, '/');
    int n = snprintf(path, sizeof path, "%.*slibinvasive-mpi-%s.so",
                     slash ? (int)(slash - us.dli_fname + 1) : 0, us.dli_fname, interface);
    void *variant = n < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!variant) {
        const char *why = dlerror();
        say_unmanaged(why ? why : "the shim's path is too long");
        return NULL;
    }
    return dlsym(variant, "shim_variant");
}

/* All of the variant's functions, or none. */
static bool attach_variant(const struct shim_variant *variant)
{
    for (const struct shim_symbol *s = variant->symbols; s->name; s++) {
        *s->real = dlsym(mpi.handle, s->name);
        if (*s->real || s->optional)
            continue;
        char why[128];
        snprintf(why, sizeof why, "this MPI library has no %s", s->name);
        say_unmanaged(why);
        return false;
    }
    for (const struct shim_symbol *s = variant->symbols; s->name; s++)
        if (s->call >= 0 && *s->real)
            mpi.guard[s->call] = s->guard;
    *variant->wrap = wrap_all;
    *variant->hook = hook_set;
#ifdef SHIM_FORTRAN
    *variant->caller_offset = (char *)&shim_caller - (char *)__builtin_thread_pointer();
#endif
    return true;
}

/* --- the first call */

/* For the program's library of triggers: a test that is one of ours is no wait of the program. */
static void *own_function(const char *name)
{
    return dlsym(mpi.handle, name);
}

static void fill_entries(void)
{
    find_own();
    wrap_all(false);
    if (inv_asked())
        atomic_store_explicit(&inv_triggers.mpi_function, own_function, memory_order_release);
    if (!inv_asked()) /* a rank that refuses management still has to tell the other ranks */
        return;
    const struct shim_variant *variant = load_variant();
    if (!variant || !attach_variant(variant))
        return;
    wrap_all(false);
}

/* The thread that was resolving is not in the child; what it has found is. */
static void after_fork_in_child(void)
{
    mpi.lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    mpi.resolving = false;
}

static void __attribute__((constructor)) register_fork_handler(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void *find_target(enum shim_level level, enum shim_call call)
{
    if (!mpi.own[level][call])
        return NULL;
    return shim_target(level, call);
}

void *shim_resolve(enum shim_level level, enum shim_call call, const void *caller)
{
    INV_UNCANCELLED;
    pthread_mutex_lock(&mpi.lock);
    if (!mpi.resolved && !mpi.resolving) {
        /* The library may call MPI functions while it is asked for its version. */
        mpi.resolving = true;
        if (find_library(caller)) {
            inv_assert(mpi.handle && mpi.from < mpi.to);
            fill_entries();
            mpi.resolved = true;
        }
        mpi.resolving = false;
    }
    void *function = find_target(level, call);
    pthread_mutex_unlock(&mpi.lock);
    if (function)
        return function;
    inv_say_on_stderr("invasive: %s was called but no MPI library that has it is loaded\n",
                      shim_names[call] + (level == SHIM_MPI));
    _exit(127); /* what the dynamic linker does */
}
