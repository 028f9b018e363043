/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * yield.c - threads of OpenBLAS, BLIS and MKL wait for each other in loops that call sched_yield; the
 * thread that such a loop waits for gets the core.
 *
 * The kernel would run any other thread on the processor, but no thread that queues in our runtime
 * for a core of its process.  So sched_yield is interposed (we are preloaded), and is a scheduling
 * point of the OpenMP runtime in regions with such loops (gomp_program_yields); elsewhere it is
 * the kernel's.
 */
#include "libinvasive/base/futex.h"
#include "libinvasive/process/openmp.h"

#include <sched.h>

#pragma GCC visibility push(default)

int sched_yield(void)
{
    return inv_yield_to_own() ? 0 : inv_kernel_yield();
}

#pragma GCC visibility pop
