/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tune.h - finds the value of a parameter with which iterations are shortest, while the program runs
 * (record/control_point.c, record/tuning.c).
 *
 * Values are at most INV_TUNE_VALUES of the range, evenly or by equal factors.  The search begins
 * with the program's own value and steps of half of the range, which are halved when neither neighbour
 * is better (hill climbing).  So it finds the best value if times fall and rise once over the range, and else
 * one that no neighbour betters.  The time of a value is the median of some iterations: more of them
 * where they differ much, fewer where the value is clearly worse.  When the times of the value that
 * was chosen change for good, the search begins anew from there, but only after ten
 * times as many iterations as the search before took.
 *
 * Pure: times go in, the value comes out; no clock.
 */
#ifndef INV_TUNE_H
#define INV_TUNE_H

#include <stdbool.h>
#include <stdint.h>

enum { INV_TUNE_VALUES = 33, INV_TUNE_SAMPLES = 20 };

/* For one thread at a time. */
struct inv_tune {
    int value[INV_TUNE_VALUES]; /* rising; the program's own is one of them */
    unsigned count, first;      /* values; index of the program's own */
    /* Indices of the value in use, and of the best so far; distance of the next neighbours, and on
     * which side of the best the first of them is. */
    unsigned at, best, step;
    int side;
    bool settled; /* the search is over */
    bool confirms, again; /* the program's own value is to be tried once more at the end; and is now */
    /* Of each value: the latest median time, > 0, or 0: it has not been tried since the search
     * began; and how many iterations have ever had it. */
    double median_ns[INV_TUNE_VALUES];
    uint64_t iterations[INV_TUNE_VALUES];
    uint64_t sample[INV_TUNE_SAMPLES]; /* times of iterations with the value in use */
    unsigned samples;
    bool warm;          /* the first iteration with the value in use has been left out */
    double error_ns;    /* of the median of the best value: its standard error */
    double usual_ns;    /* the median after the search; 0 not known yet */
    unsigned unusual;   /* blocks of samples in sequence that differ from it */
    uint64_t searching, since; /* iterations of the latest search, and since it ended */
    unsigned searches;
};

/* Begins the first search.  low <= high; `own` is brought between them. */
void inv_tune_begin(struct inv_tune *tune, int low, int high, int own);
/* The same with these `count` values, 1 to INV_TUNE_VALUES, which rise; `own` is one of them.  Another value is
 * chosen only if `own` is slower at the end, too: times may have changed meanwhile.  Without a second search it takes
 * at most INV_TUNE_SAMPLES + 1 iterations for each value, and as many for `own` at the end. */
void inv_tune_begin_list(struct inv_tune *tune, const int *values, unsigned count, int own);

/* Adds an iteration with the present value, which took `ns` nanoseconds.  True: something has
 * changed: the value in use, a median, or the search is over. */
bool inv_tune_add(struct inv_tune *tune, uint64_t ns);

/* The value for the next iteration. */
static inline int inv_tune_value(const struct inv_tune *t) { return t->value[t->at]; }

#endif
