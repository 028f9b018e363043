/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * iteration.h - what the shim has seen of the program's iterations, class by class.
 *
 * An iteration is what lies between two passes of the synchronising call that recurs most
 * regularly (phase.c finds it); iterations that go through the same call sites are of one
 * class: time steps, time steps with output, inner steps of a solver.  Where nothing recurs,
 * the time is cut into windows of some milliseconds, which are the class SHIM_CLASS_WINDOWS.
 *
 * Written by the thread that called MPI_Init, in workload.c, which hands them to call-site statistics.
 */
#ifndef SHIM_ITERATION_H
#define SHIM_ITERATION_H

#include <stdint.h>

enum {
    SHIM_CLASSES = 16,
    SHIM_CLASS_WINDOWS = 0, /* windows of time, and iterations whose class had no room */
};

/* Sums over all iterations of the class so far. */
struct shim_iteration_class {
    uint64_t sites; /* hash of the call sites that its iterations go through; 0: windows */
    uint64_t count; /* iterations */
    uint64_t length_ns; /* wall time: useful + waiting */
    uint64_t useful_ns; /* of the main thread, outside waits */
    uint64_t wait_ns;   /* of the main thread, inside waits */
    uint64_t core_ns;   /* useful core time: over all cores that the process held meanwhile */
};

#endif
