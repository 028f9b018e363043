/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * wavefront.c - symmetric Gauss-Seidel sweeps over boxes of a grid.  A point needs its new neighbours below, to
 * the left and behind, so the threads are a pipeline: each has some columns of the box, and begins a plane when
 * the thread to its left has done its part of it, which it sees by a counter that it waits for in a loop.  The
 * boxes are distributed among the ranks and exchange their outermost planes before each iteration.  MPI and
 * OpenMP.
 *
 * Usage: wavefront [ITERATIONS [POINTS]]: of a box, in each direction.  The checksum does not depend on ranks or
 * threads.
 */
#include <mpi.h>
#include <omp.h>
#include <stddef.h>

#include "program.h"

enum { BOXES = 4, LINE = 64 / sizeof(int) };

/* POINTS and a boundary on each side, in each direction. */
static int points;
static size_t row, plane;
static double *boxes[BOXES]; /* NULL: another rank's */
static int rank, ranks;
/* Planes that each thread has done; each in a cache line of its own. */
static int *done;

static int owner_of(int box)
{
    return box * ranks / BOXES;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "wavefront: no memory for %zu items\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void make_boxes(void)
{
    size_t side = (size_t)points + 2;
    row = side;
    plane = side * side;
    done = allocate((size_t)omp_get_max_threads() * LINE, sizeof *done);
    for (int b = 0; b < BOXES; b++) {
        if (owner_of(b) != rank)
            continue;
        boxes[b] = allocate(plane * side, sizeof(double));
        for (size_t p = 0; p < plane * side; p++)
            boxes[b][p] = (double)(mix_bits(p + plane * side * (size_t)b) % 1000) / 1000;
    }
}

/* The upper boundary of box b is the first plane of the next one, whose lower boundary is b's last. */
static void exchange(void)
{
    for (int b = 0; b + 1 < BOXES; b++) {
        int lower = owner_of(b), upper = owner_of(b + 1), count = (int)plane;
        double *last = boxes[b] ? boxes[b] + (size_t)points * plane : NULL;
        double *first = boxes[b + 1] ? boxes[b + 1] + plane : NULL;
        if (lower == upper) {
            if (lower == rank) {
                memcpy(last + plane, first, plane * sizeof *last);
                memcpy(first - plane, last, plane * sizeof *last);
            }
        } else if (lower == rank)
            MPI_Sendrecv(last, count, MPI_DOUBLE, upper, b, last + plane, count, MPI_DOUBLE, upper, b,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (upper == rank)
            MPI_Sendrecv(first, count, MPI_DOUBLE, lower, b, first - plane, count, MPI_DOUBLE, lower, b,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Wait until that thread has done so many planes. */
static void wait_for(int thread, int planes)
{
    while (__atomic_load_n(&done[thread * LINE], __ATOMIC_ACQUIRE) < planes)
        ;
}

static void tell(int thread, int planes)
{
    __atomic_store_n(&done[thread * LINE], planes, __ATOMIC_RELEASE);
}

/* One plane's rows from `first` up to `end`, forwards or backwards. */
static void relax(double *u, int k, int first, int end, int step)
{
    for (int n = first; n < end; n++) {
        int j = step > 0 ? n : first + end - 1 - n;
        double *at = u + (size_t)k * plane + (size_t)j * row;
        for (int m = 1; m <= points; m++) {
            double *p = at + (step > 0 ? m : points + 1 - m);
            *p = 0.1 * *p + 0.15 * (p[-1] + p[1] + p[-(ptrdiff_t)row] + p[row] + p[-(ptrdiff_t)plane] + p[plane]);
        }
    }
}

static void sweep(double *u, int step)
{
#pragma omp parallel
    {
        int threads = omp_get_num_threads(), me = omp_get_thread_num();
        int first = 1 + points * me / threads, end = 1 + points * (me + 1) / threads, before = me - step;
        for (int n = 1; n <= points; n++) {
            if (before >= 0 && before < threads)
                wait_for(before, n);
            relax(u, step > 0 ? n : points + 1 - n, first, end, step);
            tell(me, n);
        }
    }
    for (int t = 0; t < omp_get_max_threads(); t++)
        done[t * LINE] = 0;
}

static uint64_t checksum(void)
{
    uint64_t sum = 0, all;
    for (int b = 0; b < BOXES; b++)
        for (size_t p = plane; boxes[b] && p < plane * ((size_t)points + 1); p++)
            sum += hash_value(boxes[b][p], p + plane * (size_t)b * row);
    MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int iterations = number_argument(argc, argv, 1, 60);
    points = number_argument(argc, argv, 2, 96);
    if (points > 1000) {
        fprintf(stderr, "wavefront: at most 1000 points\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_boxes();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int n = 0; n < iterations; n++) {
        exchange();
        for (int b = 0; b < BOXES; b++)
            if (boxes[b]) {
                sweep(boxes[b], 1);
                sweep(boxes[b], -1);
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    uint64_t sum = checksum();
    if (rank == 0)
        printf("wavefront: %d ranks, %d threads, %d boxes\nseconds %.6f\nchecksum %016llx\n", ranks,
               omp_get_max_threads(), BOXES, seconds, (unsigned long long)sum);
    MPI_Finalize();
    return 0;
}
