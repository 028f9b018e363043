/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * steady.h - has a figure that is measured again and again changed for good, so that it should be
 * announced?  Changes that come and go are averaged.  Used by mpi-shim/measure/workload.c, and by
 * the simulated processes of `rmctl simulate`, which announce as real ones do.  Pure.
 */
#ifndef INV_STEADY_H
#define INV_STEADY_H

#include <stdbool.h>

/* The measurements, and the value announced last.  Zero-initialised: nothing is measured yet.  For
 * one thread at a time. */
struct inv_steady {
    double told; /* announced last, > 0; 0: nothing has been announced */
    double sum;  /* of the latest measurements on one side of `told`, */
    int side;    /* which is: -1 below, 1 above, 0 near it; */
    unsigned run; /* how many these are, less than INV_STEADY_RUN; 0 near it */
    double all;   /* sum of the measurements since the announcement, or of the latest block, */
    unsigned count; /* and their number */
};

/*
 * Adds a measurement, >= 0.  True when `told` has a new value, to be announced: at the second
 * measurement; when INV_STEADY_RUN in sequence are on one side of `told` by more than 10 %; when
 * the mean of INV_STEADY_BLOCK differs from it by more than 5 %.  So alternating figures are
 * averaged, a lasting change is followed after four measurements, and a small drift once in a
 * block.
 */
enum { INV_STEADY_FIRST = 2, INV_STEADY_RUN = 4, INV_STEADY_BLOCK = 60 };
bool inv_steady_add(struct inv_steady *s, double value);

#endif
