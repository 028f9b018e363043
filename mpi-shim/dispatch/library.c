/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* library.c - see library.h. */
#include "mpi-shim/gen/shim-pmpi.h"

#include <stdatomic.h>
#include <string.h>

enum { KIND_UNKNOWN, KIND_OPEN_MPI, KIND_OTHER };

/* Written by the first threads that ask.  relaxed: all find the same. */
static struct {
    _Atomic int kind;
    char version[16384]; /* what the library says of itself */
} library;

bool shim_is_open_mpi(void)
{
    int kind = atomic_load_explicit(&library.kind, memory_order_relaxed);
    if (kind == KIND_UNKNOWN) {
        int length = 0;
        shim_pmpi.Get_library_version(library.version, &length);
        kind = strstr(library.version, "Open MPI") ? KIND_OPEN_MPI : KIND_OTHER;
        atomic_store_explicit(&library.kind, kind, memory_order_relaxed);
    }
    return kind == KIND_OPEN_MPI;
}
