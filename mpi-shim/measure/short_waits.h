/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * short_waits.h - does a rank lend its core in short waits, or hold it?
 *
 * A core that is lent for a fraction of a millisecond is of use if the ranks are out of balance.  If they
 * are in balance the loan costs more than it gains: the borrower's data is in the other core's cache, and
 * its teams change twice.  The length of the iterations shows which of the two holds.  So both modes are
 * tried, in windows of time that are the same in all ranks of a node.  One rank decides for all ranks of
 * the node, since the mode of one rank changes the iterations of all.
 *
 * Pure: times go in, and a word comes out that the caller shows to the other ranks; no clock, no
 * MPI.
 */
#ifndef SHIM_SHORT_WAITS_H
#define SHIM_SHORT_WAITS_H

#include <stdint.h>

enum shim_short_wait_mode { SHIM_LENDS, SHIM_HOLDS };
enum { SHIM_SHORT_WAIT_RATIOS = 8 };

/* Belongs to the rank that decides.  Zero-initialised; for one thread. */
struct shim_short_waits {
    uint32_t word; /* the decision; 0: none yet, cores are lent in short waits */
    /* The latest window in which iterations ended; when the first and the last one did; how
     * many. */
    uint64_t window, first_ns, last_ns;
    unsigned count;
    /* The latest window of each mode that has not been compared yet: its number, and the mean length of
     * its iterations; 0: none. */
    uint64_t window_of[2];
    double mean_ns[2];
    /* The latest ratios: length of iterations in windows that hold over those in windows that
     * lend. */
    double ratio[SHIM_SHORT_WAIT_RATIOS];
    unsigned ratios; /* number of ratios so far */
    unsigned longs;  /* long iterations, or times without one, in sequence */
};

/* The mode at the time `ns`, by the word of the rank that decides.
 *   ns  CLOCK_MONOTONIC, which all processes of the node share */
enum shim_short_wait_mode shim_short_waits_mode(uint32_t word, uint64_t ns);
/* The time (ns) until which cores are held in short waits, by the present decision: the end of a
 * window, some windows later at most.  0: they are lent. */
uint64_t shim_short_waits_hold_until(uint32_t word, uint64_t ns);
/* Adds an iteration of the dominant class that ended at `end_ns`.  Returns the word from now on. */
uint32_t shim_short_waits_add_iteration(struct shim_short_waits *w, uint64_t end_ns);
/* Some time has passed without an iteration.  Returns the word from now on. */
uint32_t shim_short_waits_no_iteration(struct shim_short_waits *w);

#endif
