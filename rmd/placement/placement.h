/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement.h - which cores: from the present owners (C) and the number of cores that each process
 * shall own (D) to the next owners.  The number of moves is minimal.  Among such solutions, the
 * cores of each process are close together in the machine.  Pure functions, like the policies: the
 * machine is a few bytes here, so that one of 100,000 cores needs no hwloc.
 */
#ifndef RMD_PLACEMENT_H
#define RMD_PLACEMENT_H

enum { RMD_NO_OWNER = -1 };

/*
 * The machine as a tree: cores are numbered so that each group of cores that share something
 * is a range of numbers.  apart[c] says how far core c is from core c-1:
 *
 *   0           same physical core (they are its hardware threads)
 *   1           same cache
 *   2           same NUMA node
 *   3           same package
 *   RMD_LEVELS  only the machine
 *
 * Cores b < c are as far apart as the largest of apart[b + 1] ... apart[c].  A group of level k is
 * a longest range in which only the first core has apart > k.
 */
enum { RMD_LEVELS = 4 };

struct rmd_machine {
    unsigned ncores;
    const unsigned char *apart; /* of each core, the first is ignored; NULL: all cores are equally
                                   far apart */
};

struct rmd_placed {
    unsigned target; /* cores that it shall own */
    int main_core;   /* core that it gives up last, -1 none: where its main thread lives */
    int preferred;   /* core to begin at when it owns none; -1: where most cores are free */
};

/*
 * rmd_place_on - changes owner[0..machine->ncores) (indices of processes, or RMD_NO_OWNER) so that
 * each process p owns procs[p].target cores.  The targets should add up to at most ncores; cores
 * beyond that are not given out.
 *   holders  the process that computes on each core now, or RMD_NO_OWNER; NULL: not known.  Among
 *            equally good cores, a process gets those that it holds, and gives up those that it
 *            does not
 * Moves are minimal: a process that grows gives up no core, and one that shrinks gets none.  So the
 * number of moved cores is max(0, growth of p), summed over all p.  Then it makes the spread small:
 * the physical cores, caches, NUMA nodes and packages of which a process has a core, added up for all
 * processes.  At last, where groups leave the choice, it makes ranges contiguous.  It is a heuristic:
 * the optimum is as hard to find as the best packing of bins.  O(ncores + nprocs) for each level.
 * Returns the number of cores whose owner has changed: 0 when memory is short.
 */
unsigned rmd_place_on(const struct rmd_machine *machine, int *owner, const int *holders,
                      const struct rmd_placed *procs, unsigned nprocs);

#endif
