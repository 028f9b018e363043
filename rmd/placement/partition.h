/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * partition.h - which core each process computes on, if there are more processes than cores.
 */
#ifndef RMD_PARTITION_H
#define RMD_PARTITION_H

enum { RMD_NO_PART = -1 };

/*
 * rmd_partition - divides n processes among the cores so that each core has the same load.
 *   load   load of each process, > 0, in any unit; other values, or not finite: unknown
 *   cores  > 0
 *   core   of each process.  In: its present core, 0 .. cores - 1; other values: none.  Out: its
 *          next core; RMD_NO_PART for all processes if a load is unknown or no division is even
 *   order  scratch array of n numbers
 * A division is even if no core has more than 1.1 times the mean load.  An even division is kept.
 * A pure function, of at most n * n + n * cores steps.
 */
void rmd_partition(const double *load, unsigned n, unsigned cores, int *core, unsigned *order);

#endif
