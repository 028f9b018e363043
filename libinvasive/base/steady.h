/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * steady.h - when a figure that is measured again and again has changed for good, so that it
 * is to be announced: what comes and goes is averaged (mpi-shim/measure/workload.c, and the processes of
 * `rmctl simulate`, which are to announce what these would).  Pure.
 */
#ifndef INV_STEADY_H
#define INV_STEADY_H

#include <stdbool.h>

/* The figure, and the value last announced.  Zero-initialised: nothing yet. */
struct inv_steady {
    double told; /* > 0; 0 nothing */
    double sum;  /* of the measurements in a row on one side of `told` */
    int side;    /* -1 below, 1 above */
    unsigned run;
    double all; /* of the measurements since it was told, or of the latest block of them */
    unsigned count;
};

/*
 * Add a measurement, >= 0.  True when `told` is a new one, to be announced: at the second
 * measurement; when INV_STEADY_RUN in a row were on the same side of it by more than 10 %;
 * when the mean of INV_STEADY_BLOCK is off by more than 5 %.  So what alternates is averaged,
 * what persists is followed after four measurements, and small drift now and then.
 */
enum { INV_STEADY_FIRST = 2, INV_STEADY_RUN = 4, INV_STEADY_BLOCK = 60 };
bool inv_steady_add(struct inv_steady *s, double value);

#endif
