/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gets.c - rank 0 gets many numbers one by one from the windows of the others, which wait in the
 * library meanwhile; for test_windows.py.
 *
 *   gets COUNT fence|flush single|multiple
 *
 * prints the seconds that it took and how many were wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, count;
static int *shown, *got;
static MPI_Win window;

static void get(int i) { MPI_Get(got + i, 1, MPI_INT, 1 + i % (size - 1), i, 1, MPI_INT, window); }

static void by_fence(void)
{
    for (int i = 0; rank == 0 && i < count; i++)
        get(i);
    MPI_Win_fence(0, window);
}

static void by_flush(void)
{
    for (int i = 0; rank == 0 && i < count; i++) {
        if (i == 0)
            MPI_Win_lock_all(0, window);
        get(i);
        MPI_Win_flush(1 + i % (size - 1), window);
    }
    if (rank == 0)
        MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int wrong(void)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += got[i] != i + 1;
    return n;
}

int main(int argc, char **argv)
{
    int level, fence = argc > 2 && strcmp(argv[2], "fence") == 0;
    int many = argc > 3 && strcmp(argv[3], "multiple") == 0;
    MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || size < 2 || (count = atoi(argv[1])) < 1) {
        fputs("usage: gets COUNT fence|flush single|multiple, with two ranks or more\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    shown = malloc((size_t)count * sizeof *shown);
    got = calloc((size_t)count, sizeof *got);
    if (!shown || !got)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < count; i++)
        shown[i] = i + 1;
    MPI_Win_create(shown, (MPI_Aint)count * (MPI_Aint)sizeof *shown, sizeof *shown, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &window);
    if (fence)
        MPI_Win_fence(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    (fence ? by_fence : by_flush)();
    double seconds = MPI_Wtime() - start;
    MPI_Win_free(&window);
    if (rank == 0)
        printf("seconds %.6f\nwrong %d\n", seconds, wrong());
    free(shown);
    free(got);
    MPI_Finalize();
    return 0;
}
