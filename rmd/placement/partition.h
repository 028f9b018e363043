/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * partition.h - which core each process computes on, where processes are more than cores.
 */
#ifndef RMD_PARTITION_H
#define RMD_PARTITION_H

enum { RMD_NO_PART = -1 };

/*
 * rmd_partition - divide the processes among the cores so that each core has the same load.
 *   load   n of them, > 0: what the process computes, in any unit; else, or not finite: unknown
 *   cores  > 0
 *   core   n of them.  In: where each process is now, 0 .. cores - 1, anything else: nowhere.  Out:
 *          where it is to be; RMD_NO_PART for all where a load is unknown or no division is even
 *   order  scratch array of n numbers
 * A division is even if no core has more than 1.1 times the mean load.  One that is even is kept.
 * A pure function; n n + n cores steps at most.
 */
void rmd_partition(const double *load, unsigned n, unsigned cores, int *core, unsigned *order);

#endif
