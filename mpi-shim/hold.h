/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.h - does a rank lend its core in short waits, or hold it?
 *
 * A core that is lent and taken back within a fraction of a millisecond has been of use if the ranks
 * are out of balance, and has cost more than that if they are not: the borrower's data is in the
 * other core's cache, and its teams change twice.  Which of the two it is shows in the length of the
 * iterations, so both ways are tried, in windows of time that are the same in all ranks of a node.
 * One rank decides for all that are here, since one rank's way changes all ranks' iterations.
 *
 * Pure: times go in, a word comes out that the other ranks are to see; no clock, no MPI.
 */
#ifndef SHIM_HOLD_H
#define SHIM_HOLD_H

#include <stdint.h>

enum shim_hold_way { SHIM_LENDS, SHIM_HOLDS };
enum { SHIM_HOLD_RATIOS = 8 };

/* Of the rank that decides, zero-initialised; for one thread. */
struct shim_hold {
    uint32_t word; /* what has been decided; 0: nothing, short waits are lent */
    /* Ends of iterations in the latest window with one: how many, the first and the last. */
    uint64_t window, first_ns, last_ns;
    unsigned count;
    /* The latest window of each way that has not been compared yet: which, and the mean length of its
     * iterations; 0: none. */
    uint64_t window_of[2];
    double mean_ns[2];
    double ratio[SHIM_HOLD_RATIOS]; /* the latest: length where waits hold over where they lend */
    unsigned ratios;                /* so far */
    unsigned vain;                  /* in sequence: long iterations, or none */
};

/* What is to be done at that time, ns of a clock that all processes of the node have, by the word of the
 * rank that decides. */
enum shim_hold_way shim_hold_way(uint32_t word, uint64_t ns);
/* Until when waits hold, as it is decided now: the time at which a window ends, some windows later at most; 0: they
 * lend. */
uint64_t shim_hold_until(uint32_t word, uint64_t ns);
/* An iteration of the usual kind has ended; returns the word from now on. */
uint32_t shim_hold_iteration(struct shim_hold *hold, uint64_t end_ns);
/* Some time has passed without one; likewise. */
uint32_t shim_hold_none(struct shim_hold *hold);

#endif
