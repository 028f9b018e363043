/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * opened_group.h - arrival barriers without a communicator that has an arrival board, and opened
 * groups (opened_group.c).
 *
 * The barriers come before a function that cannot be split.  Each returns when all ranks have
 * arrived; the wait in MPI that follows is short.  `tag`: any number on which the ranks agree.
 */
#ifndef SHIM_OPENED_GROUP_H
#define SHIM_OPENED_GROUP_H

#include "mpi-shim/ranks/managed_group.h"

#pragma GCC visibility push(hidden)

/* A barrier of the ranks of a group.  Does nothing if no managed group has all of them. */
void shim_arrival_barrier_group(MPI_Group group, int tag, const void *call_site);
/* A number for a text, such as the string tag of MPI_Comm_create_from_group; >= 0. */
int shim_text_tag(const char *text);
/* A barrier of this rank and `peer`, a rank of MPI_COMM_WORLD. */
void shim_arrival_barrier_two(int peer, int tag, const void *call_site);

/* The ranks of a window or a file, as long as its handle is valid.  A NULL pointer to it means that
 * there is no rank to wait for.  The struct ends with the handle, which the program must order
 * after all other uses of the handle. */
struct shim_opened_group {
    MPI_Group group;
    int size, me;    /* number of ranks; the number of this one */
    int *world_rank; /* of each rank: the number in MPI_COMM_WORLD */
    const struct shim_managed_group *managed;
    int tag;
    const void *kind;
    uintptr_t handle;
    /* a window: is it in an exposure epoch, in an access epoch?  MPI allows one thread at a time in
     * each */
    bool posted, started;
    _Atomic int locks; /* a window: lock epochs of all threads.  relaxed: it orders no other data */
    struct shim_opened_group *next;
};
/* A barrier of the group's ranks. */
void shim_opened_group_barrier(struct shim_opened_group *g, const void *call_site);
/* Rings those of the other ranks that sleep. */
void shim_opened_group_ring(const struct shim_opened_group *g);
/* The group of a window or file; NULL: none. */
struct shim_opened_group *shim_opened_group_of_win(MPI_Win win);
struct shim_opened_group *shim_opened_group_of_file(MPI_File file);
/* Makes the group of a new window or file, unless it has no rank to wait for, or a rank that is not
 * managed. */
void shim_remember_win(MPI_Win win, int tag);
void shim_remember_file(MPI_File file, int tag);
/* _detach before the call that ends the handle: another thread may get the same handle at once.
 * _end after the call: frees the group if the handle is gone, else attaches the group again. */
void shim_opened_group_detach(struct shim_opened_group *g);
void shim_opened_group_end(struct shim_opened_group *g, bool gone);
/* Frees the group, without a barrier: MPI ends the handle within a function of the program that it
 * calls, where the rank cannot wait. */
void shim_forget_win(const MPI_Win *win);
void shim_forget_file(const MPI_File *file);
/* Tells the ranks of `group` that this rank has posted; waits until these ranks have posted. */
void shim_opened_group_notify_posted(const struct shim_opened_group *g, MPI_Group group);
void shim_opened_group_await_posted(const struct shim_opened_group *g, MPI_Group group,
                                    const void *call_site);

#pragma GCC visibility pop
#endif
