/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * expect.h - for the programs that call every function of the shim's table: each result is
 * compared with what it must be.  expect() notes a line; finish() prints all lines in rank order,
 * and which functions have been called (counted.h is made from the table).
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-shim/gen/counted.h"
#include "../log.h"

#pragma GCC diagnostic ignored "-Wstringop-overread" /* gcc and MPI_UNWEIGHTED, as in log.h */

enum { MOST_RANKS = 16 };

static int wrong;

static inline void expect(int good, const char *what)
{
    note("%s %s\n", good ? "ok" : "WRONG", what);
    wrong += !good;
    if (!good)
        fprintf(stderr, "rank %d: wrong: %s\n", world_rank, what);
}

static inline int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void start(int *argc, char ***argv, int level)
{
    int provided;
    if (level == MPI_THREAD_SINGLE)
        MPI_Init(argc, argv);
    else
        MPI_Init_thread(argc, argv, level, &provided);
    log_begin();
    if (world_size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static int finish(void)
{
    log_end();
    MPI_Finalize();
    for (int i = 0; i < COUNTED && world_rank == 0; i++)
        if (counted[i])
            printf("called %s\n", counted_names[i]);
    return wrong > 0;
}

#endif
