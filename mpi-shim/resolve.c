/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * resolve.c - finding the MPI library of this process at the first MPI call.
 *
 * The shim is preloaded into everything that a launch starts and is linked to no MPI.
 * The program brings one: linked, or loaded privately by a plug-in or an interpreter,
 * where only the list of loaded objects shows it.  An MPI whose binary interface is not
 * MPICH's is left alone.
 */
#define _GNU_SOURCE
#include "entry.h"
#include "process.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *_Atomic shim_entry[SHIM_CALLS];

static pthread_mutex_t resolve_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_entry(int call, void *function)
{
    atomic_store_explicit(&shim_entry[call], function, memory_order_release);
}

void shim_entries_wrap(bool wrap)
{
    for (const struct shim_symbol *s = shim_symbols; s->name; s++)
        if (s->call >= 0)
            set_entry(s->call, wrap ? s->wrapper : *s->real);
}

/* dl_iterate_phdr: an object whose file is called libmpi*, and that has PMPI_Init. */
static int is_mpi_library(struct dl_phdr_info *info, size_t size, void *result)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libmpi", 6) != 0)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    if (dlsym(library, "PMPI_Init") && dlsym(library, "MPI_Init")) {
        *(void **)result = library; /* stays open: we keep addresses in it */
        return 1;
    }
    dlclose(library);
    return 0;
}

/* The handle to look PMPI names up with; NULL when no MPI is loaded. */
static void *mpi_library(void)
{
    if (dlsym(RTLD_NEXT, "PMPI_Init"))
        return RTLD_NEXT;
    void *library = NULL;
    dl_iterate_phdr(is_mpi_library, &library);
    return library;
}

/* RTLD_NEXT means "after the object that calls dlsym": ours. */
static void *lookup(void *library, const char *name)
{
    return library == RTLD_NEXT ? dlsym(RTLD_NEXT, name) : dlsym(library, name);
}

/* Does the library speak the binary interface that we were compiled for?  It may use
 * other handle types otherwise (Open MPI; the MPI 5 standard interface). */
static bool has_mpich_abi(void *library)
{
    int (*get_version)(char *, int *) = lookup(library, "PMPI_Get_library_version");
    int (*get_abi)(int *, int *) = lookup(library, "PMPI_Abi_get_version");
    static char version[16384]; /* MPI_MAX_LIBRARY_VERSION_STRING of any library */
    int length = 0, major = -1, minor = -1;
    if (!get_version || get_version(version, &length) != 0)
        return false;
    if (get_abi && get_abi(&major, &minor) == 0 && major > 0)
        return false;
    version[sizeof version - 1] = '\0';
    return strstr(version, "MPICH") || strstr(version, "MVAPICH") ||
           strstr(version, "Intel(R) MPI");
}

static void say_unsupported(void)
{
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    if (inv_wanted() && (!rank || strcmp(rank, "0") == 0))
        fprintf(stderr, "invasive: this MPI library has not MPICH's binary interface; its waits "
                        "are not managed.\n");
}

/* Not an MPI type in sight: any library's functions return int. */
static int no_mpi(void)
{
    static const char text[] =
        "invasive: an MPI function was called but no MPI library is loaded\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    return 16; /* MPI_ERR_OTHER or thereabouts in any library */
}

static void fill(void *library)
{
    bool complete = has_mpich_abi(library);
    if (!complete)
        say_unsupported();
    for (const struct shim_symbol *s = shim_symbols; s->name; s++) {
        *s->real = lookup(library, s->name);
        if (!*s->real && !s->optional)
            complete = false;
    }
    bool wrap = complete && inv_wanted();
    for (const struct shim_symbol *s = shim_symbols; s->name; s++) {
        if (s->call < 0 || !*s->real)
            continue;
        bool first = s->call == SHIM_CALL_Init || s->call == SHIM_CALL_Init_thread;
        set_entry(s->call, wrap && first ? s->wrapper : *s->real);
    }
}

void *shim_resolve(enum shim_call call)
{
    pthread_mutex_lock(&resolve_lock);
    void *function = atomic_load_explicit(&shim_entry[call], memory_order_relaxed);
    if (!function) {
        void *library = mpi_library();
        if (library)
            fill(library);
        function = atomic_load_explicit(&shim_entry[call], memory_order_relaxed);
    }
    pthread_mutex_unlock(&resolve_lock);
    return function ? function : (void *)no_mpi;
}
