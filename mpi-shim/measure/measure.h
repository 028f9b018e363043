/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * measure.h - from measurements to a scalability graph S(c).
 *
 * Pure: no clock, no MPI.  S(c) = T(1) / T(c) is the throughput of an iteration on c cores
 * over that on one (Schreiber et al., 5.3.3), kept monotone and
 * concave.  See measure.c.
 */
#ifndef SHIM_MEASURE_H
#define SHIM_MEASURE_H

#include "invasive.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHIM_SCALABILITY_BINS = 32 };

/* Measurements with about the same number of cores.  Zero-initialised: none. */
struct shim_scalability {
    struct shim_scalability_bin {
        double cores, rate; /* weighted means; the latest weigh most */
        double weight;      /* measurements, up to a limit */
        uint64_t latest;    /* when the last one was added */
    } bin[SHIM_SCALABILITY_BINS];
    uint64_t added;
};

/* Adds a measurement: `rate` iterations in a unit of time, with `cores` cores on average.
 * Measurements that are not positive and finite are left out. */
void shim_scalability_add(struct shim_scalability *s, double cores, double rate);

/*
 * The graph that follows from the measurements, for at most `ncores` cores.  The points are
 * at whole numbers of cores, from the lowest measured to the highest; S of the first one is
 * its number of cores, unless one core was measured.  False when there is no measurement.
 */
bool shim_scalability_graph(const struct shim_scalability *s, unsigned ncores,
                            struct inv_scalability *graph);

#endif
