/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* managed_group.h - managed groups (managed_group.c). */
#ifndef SHIM_MANAGED_GROUP_H
#define SHIM_MANAGED_GROUP_H

#include "mpi-shim/gen/shim-pmpi.h"

#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

struct shim_managed_group {
    MPI_Comm own;    /* for the shim's messages; MPI_COMM_NULL: it has ended with MPI_Finalize */
    int size;        /* number of ranks */
    int *rank_of;    /* rank in MPI_COMM_WORLD -> rank in own, or -1 */
    int age, number; /* the same pair in all ranks, for no other group; number 0:
                        MPI_COMM_WORLD's */
    struct shim_managed_group *_Atomic next;
};
/* The oldest managed group that has all these ranks of MPI_COMM_WORLD; NULL: none. */
struct shim_managed_group *shim_managed_group_of(const int *world_rank, int count);
/* The oldest one that has every rank of MPI_COMM_WORLD; NULL: none. */
struct shim_managed_group *shim_managed_group_of_all(void);
/* Is there a managed group? */
bool shim_managed_group_any(void);
/* The highest age of a managed group of this process. */
int shim_managed_group_latest_age(void);
/* Adds a group of `size` ranks, given by their ranks in MPI_COMM_WORLD.  `own` becomes the
 * group's. */
void shim_managed_group_add(const int *world_rank, int size, int number, MPI_Comm own, int age);
/* Frees all managed groups and their communicators, in the last finalize. */
void shim_managed_groups_end(void);

/* Lets MPI make progress on all pending communication.  No rank sends with SHIM_TAG_UNUSED.
 * report_gather.c sends with SHIM_TAG_REPORT, opened_group.c with lower tags. */
enum { SHIM_TAG_UNUSED = 32767, SHIM_TAG_REPORT = 32766 };
void shim_progress(void);

#pragma GCC visibility pop
#endif
