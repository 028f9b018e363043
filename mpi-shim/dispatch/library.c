/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* library.c - see library.h. */
#include "mpi-shim/gen/shim-pmpi.h"

#include <stdatomic.h>
#include <string.h>

bool shim_is_open_mpi(void)
{
    static _Atomic int known; /* relaxed: all threads find the same */
    int known_now = atomic_load_explicit(&known, memory_order_relaxed);
    if (!known_now) {
        static char version[16384];
        int length = 0;
        shim_pmpi.Get_library_version(version, &length);
        known_now = strstr(version, "Open MPI") ? 1 : 2;
        atomic_store_explicit(&known, known_now, memory_order_relaxed);
    }
    return known_now == 1;
}
