/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * yield.c - threads of OpenBLAS that wait for each other let the one compute that they wait for.
 *
 * They call sched_yield in loops.  The kernel then runs any thread on the processor, but none that queues for a core
 * of its process.  So sched_yield is interposed (we are preloaded), and is a scheduling point of the OpenMP runtime
 * in regions of such a library (gomp_program_yields); elsewhere the kernel is asked.
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
