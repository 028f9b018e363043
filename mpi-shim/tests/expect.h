/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * expect.h - for the programs that call every function of the shim's table: each result is
 * compared with what it must be.  expect() notes a line; finish() prints all lines in rank order,
 * and which functions have been called (counted.h is made from the table).
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"

/* gcc takes MPI_STATUSES_IGNORE for an array that is too short. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread" /* and MPI_UNWEIGHTED */

enum { LOG_BYTES = 1 << 18, MOST_RANKS = 16 };

static char *text;
static size_t length;
static int world_rank, world_size, wrong;

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + length, LOG_BYTES - length, format, args);
    va_end(args);
    if (n > 0 && length + (size_t)n < LOG_BYTES)
        length += (size_t)n;
}

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
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    text = malloc(LOG_BYTES);
    if (!text || world_size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static int finish(void)
{
    if (world_rank > 0)
        MPI_Send(text, (int)length, MPI_CHAR, 0, 999, MPI_COMM_WORLD);
    for (int r = 0; r < world_size && world_rank == 0; r++) {
        MPI_Status status;
        int bytes = (int)length;
        if (r > 0) {
            MPI_Recv(text, LOG_BYTES, MPI_CHAR, r, 999, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &bytes);
        }
        printf("--- rank %d\n%.*s", r, bytes, text);
    }
    free(text);
    MPI_Finalize();
    for (int i = 0; i < COUNTED && world_rank == 0; i++)
        if (counted[i])
            printf("called %s\n", counted_names[i]);
    return wrong > 0;
}

#endif
