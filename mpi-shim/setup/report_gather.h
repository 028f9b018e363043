/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* report_gather.h - reports of ranks on other nodes, for invade --report (report_gather.c). */
#ifndef SHIM_REPORT_GATHER_H
#define SHIM_REPORT_GATHER_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Where a rank runs: exchanged in set-up. */
struct shim_location {
    uint64_t domain; /* the same in processes that share a core table */
    int32_t slot, flag_line; /* line of its sleep flag; -1: none yet */
    int32_t recorded, reporter_here; /* booleans: it keeps a record; the `invade` that wants it runs
                                        on its node */
    int32_t threads; /* boolean: several of its threads may call MPI at once */
};
/* Which rank sends its report, and to which. */
struct shim_report_plan {
    bool takes_part; /* this rank sends or receives */
    MPI_Comm comm;   /* of the managed group of all ranks */
    int root;        /* rank in MPI_COMM_WORLD that receives */
    int *from;       /* at the root: the ranks that send */
    unsigned count;  /* number of these ranks; known to all ranks */
};
/* Called in set-up by all ranks of MPI_COMM_WORLD; `all` is in order of their rank there. */
void shim_report_gather_plan(struct shim_report_plan *plan, const struct shim_location *all);
/* Called in the last finalize, after a barrier, with the record stopped.  Returns after the time
 * limits of report_gather.c at the latest.  The communicator has all ranks, numbered as in
 * MPI_COMM_WORLD. */
void shim_report_gather(struct shim_report_plan *plan, MPI_Comm comm);

#pragma GCC visibility pop
#endif
