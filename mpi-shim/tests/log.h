/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * log.h - for programs whose ranks say much: note() keeps it, and
 * log_end() prints what all ranks have kept, in rank order.
 */
#ifndef LOG_H
#define LOG_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* gcc takes MPI_STATUSES_IGNORE for an array that is too short. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { LOG_BYTES = 1 << 20 };

static char *log_text;
static size_t log_length;
static int world_rank, world_size;

/* After MPI_Init. */
static void log_begin(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    log_text = malloc(LOG_BYTES);
    if (!log_text)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(log_text + log_length, LOG_BYTES - log_length, format, args);
    va_end(args);
    if (n > 0 && log_length + (size_t)n < LOG_BYTES)
        log_length += (size_t)n;
}

/* Before MPI_Finalize; the last of this. */
static void log_end(void)
{
    enum { TAG = 999 };
    if (world_rank > 0)
        MPI_Send(log_text, (int)log_length, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    for (int r = 0; r < world_size && world_rank == 0; r++) {
        MPI_Status status;
        int bytes = (int)log_length;
        if (r > 0) {
            MPI_Recv(log_text, LOG_BYTES, MPI_CHAR, r, TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &bytes);
        }
        printf("--- rank %d\n%.*s", r, bytes, log_text);
    }
    free(log_text);
}

#endif
