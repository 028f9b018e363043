/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement.h - which cores: from who owns what (C) and how many each should own (D) to
 * the next C, with as few moves as there can be.  Pure functions, like the policies.
 */
#ifndef RMD_PLACEMENT_H
#define RMD_PLACEMENT_H

enum { RMD_NO_OWNER = -1 };

struct rmd_placed {
    unsigned target; /* cores that it shall own */
    int keep;        /* core that it gives up last, -1 none: where its main thread lives */
    int wish;        /* core to begin at when it owns none, -1 wherever there is most room */
};

/*
 * rmd_place - change owner[0..ncores) (indices of processes, RMD_NO_OWNER) so that each
 * process p owns procs[p].target cores.  The targets add up to at most ncores.  A core
 * changes its owner only when the old one has too many (or is nobody) and the new one too
 * few; a process grows next to what it has, and shrinks from the edges of it, so that
 * ranges stay contiguous where they can.  Returns the number of cores that moved.
 */
unsigned rmd_place(int *owner, unsigned ncores, const struct rmd_placed *procs, unsigned nprocs);

#endif
