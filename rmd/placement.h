/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement.h - which cores: from who owns what (C) and how many each should own (D) to
 * the next C, with as few moves as there can be and, among those, with the cores of each
 * process close together in the machine.  Pure functions, like the policies: the machine is
 * a few bytes here, so that one of 100,000 cores needs no hwloc.
 */
#ifndef RMD_PLACEMENT_H
#define RMD_PLACEMENT_H

enum { RMD_NO_OWNER = -1 };

/*
 * The machine as a tree: cores are numbered so that each group of cores that share something
 * is a range of numbers.  Which groups there are says one byte per core, how far it is from
 * the one before it:
 *
 *   apart[c]   0 the two share a physical core (hardware threads), else 1 a cache, else
 *              2 a NUMA node, else 3 a package, else RMD_LEVELS nothing but the machine
 *
 * so that cores b < c are as far apart as the largest of apart[b + 1] ... apart[c], and a
 * group of level k is a longest range in which nothing but its first core has apart > k.
 */
enum { RMD_LEVELS = 4 };

struct rmd_machine {
    unsigned ncores;
    const unsigned char *apart; /* ncores of them, the first not looked at; NULL: no core is
                                   nearer to another than any other is */
};

struct rmd_placed {
    unsigned target; /* cores that it shall own */
    int keep;        /* core that it gives up last, -1 none: where its main thread lives */
    int wish;        /* core to begin at when it owns none; -1: where most cores are free */
};

/*
 * rmd_place_on - change owner[0..machine->ncores) (indices of processes, RMD_NO_OWNER:
 * nobody) so that each process p owns procs[p].target cores.  The targets
 * add up to at most ncores; what is more than that is not given out.
 *   holders  who computes on each core now, RMD_NO_OWNER nobody; or NULL: not known.  Of
 *            cores that are as good otherwise, a process is given those that it holds, and
 *            gives up those that it does not
 * Moves are minimal: nobody who shall have more gives up a core, nobody who shall have less
 * gets one, so that max(0, growth of p), summed over all p, cores are given to somebody.
 * Then it makes rmd_spread small, and at last, where groups leave the choice, ranges
 * contiguous.  It is a heuristic: the best is as hard to find as the best packing of bins.
 * O(ncores + nprocs) for each level.  Returns the number of cores whose owner has changed;
 * without memory for the work nothing does.
 */
unsigned rmd_place_on(const struct rmd_machine *machine, int *owner, const int *holders,
                      const struct rmd_placed *procs, unsigned nprocs);

/* rmd_place - the same where no core is nearer to another than any other is. */
unsigned rmd_place(int *owner, unsigned ncores, const struct rmd_placed *procs, unsigned nprocs);

/*
 * rmd_spread - how far the processes are spread over the machine: for each process the number
 * of physical cores, caches, NUMA nodes and packages of which it has a core, added up.
 * 0 when memory is short.
 */
unsigned long rmd_spread(const struct rmd_machine *machine, const int *owner, unsigned nprocs);

#endif
