/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* managed_group.h - managed groups (managed_group.c). */
#ifndef SHIM_MANAGED_GROUP_H
#define SHIM_MANAGED_GROUP_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

struct shim_managed_group {
    MPI_Comm own;    /* for the shim's messages; MPI_COMM_NULL: ended with MPI_Finalize */
    int size;        /* ranks */
    int *rank_of;    /* world rank -> rank in own, or -1 */
    int age, number; /* all its ranks identify it by both; number 0: MPI_COMM_WORLD's */
    struct shim_managed_group *_Atomic next;
};
/* The oldest managed group that has all these ranks of MPI_COMM_WORLD; NULL: none. */
struct shim_managed_group *shim_managed_group_of(const int *world_rank, int count);
/* One that has every rank of MPI_COMM_WORLD. */
struct shim_managed_group *shim_managed_group_of_all(void);
bool shim_managed_group_any(void);
int shim_managed_group_latest_age(void); /* age */
/* Its ranks, `size` of them, by their rank in MPI_COMM_WORLD. */
void shim_managed_group_add(const int *world_rank, int size, int number, MPI_Comm own, int age);
void shim_managed_groups_end(void);

/* Let MPI make progress on whatever is under way.  No rank sends with SHIM_TAG_UNUSED.
 * report_gather.c sends with SHIM_TAG_REPORT, opened_group.c with lower tags. */
enum { SHIM_TAG_UNUSED = 32767, SHIM_TAG_REPORT = 32766 };
void shim_progress(void);

#pragma GCC visibility pop
#endif
