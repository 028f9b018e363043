/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calls.c - how long MPI calls take that do nothing but communicate: for bench/waits.py.
 * Plain MPI.
 *
 *   calls SECONDS CALL...     each CALL is measured for about so long, and prints "CALL_us number",
 *                             the mean, and "CALL_best_us number", that of the fastest batch
 *
 * Batches double until one takes a hundredth of the time; only those of the last length count, so
 * that what a first call costs does not.  Rank 0 decides for all, outside of what is timed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * 1024, RANKS = 64 };
/* Calls in a batch at least: rank 0 is the first to leave the broadcast between batches, so its
 * clock misses some of the first call. */
enum { LEAST = 8 };

static int rank, size;
static unsigned char *out, *in; /* RANKS KiB or 1 MiB, whichever is more */
static long wrong;

static void barrier(long i)
{
    (void)i;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(long i)
{
    double mine = (double)i + rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (double)i * size + size * (size - 1) / 2;
}

static void alltoall(long i)
{
    for (int r = 0; r < size; r++)
        out[r * KIB] = (unsigned char)(i + rank);
    MPI_Alltoall(out, KIB, MPI_BYTE, in, KIB, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        wrong += in[r * KIB] != (unsigned char)(i + r);
}

static void around(long i, int bytes)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    out[0] = out[bytes - 1] = (unsigned char)(i + rank);
    MPI_Sendrecv(out, bytes, MPI_BYTE, next, 1, in, bytes, MPI_BYTE, previous, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    wrong += in[0] != (unsigned char)(i + previous) || in[bytes - 1] != in[0];
}

static void ring(long i) { around(i, 8); }
static void ring_large(long i) { around(i, MIB); }

/* There and back between each even rank and the odd one after it. */
static void pingpong(long i, int bytes)
{
    int other = rank ^ 1;
    if (other >= size)
        return;
    if (rank % 2 == 0) {
        out[0] = (unsigned char)i;
        MPI_Send(out, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += in[0] != (unsigned char)i;
    } else {
        MPI_Recv(out, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD);
    }
}

static void pingpong_small(long i) { pingpong(i, 8); }
static void pingpong_large(long i) { pingpong(i, MIB); }

static const struct call {
    const char *name;
    void (*once)(long);
} calls[] = {{"barrier", barrier},
             {"allreduce", allreduce},
             {"alltoall", alltoall},
             {"ring", ring},
             {"ring_large", ring_large},
             {"pingpong", pingpong_small},
             {"pingpong_large", pingpong_large}};

static double one_batch(const struct call *call, long count)
{
    double start = MPI_Wtime();
    for (long i = 0; i < count; i++)
        call->once(i);
    return MPI_Wtime() - start;
}

static void measure(const struct call *call, double seconds)
{
    long plan[2] = {1, LEAST}, done = 0; /* go on; calls in a batch */
    double spent = 0, all = 0, best = 0;
    one_batch(call, 1);
    while (plan[0]) {
        double t = one_batch(call, plan[1]);
        spent += t;
        done += plan[1];
        all += t;
        if (best == 0 || t < best)
            best = t;
        plan[0] = t < seconds / 100 || all < seconds;
        if (t < seconds / 100) {
            plan[1] *= 2;
            spent = best = 0;
            done = 0;
        }
        MPI_Bcast(plan, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%s_us %.4f\n%s_best_us %.4f\n", call->name, spent / (double)done * 1e6, call->name,
               best / (double)plan[1] * 1e6);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size > RANKS || !(out = calloc(2, MIB))) {
        fprintf(stderr, "usage: calls SECONDS CALL...   with at most %d ranks\n", RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    in = out + MIB;
    for (int a = 2; a < argc; a++)
        for (unsigned c = 0; c < sizeof calls / sizeof *calls; c++)
            if (strcmp(argv[a], calls[c].name) == 0)
                measure(&calls[c], atof(argv[1]));
    long all_wrong = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d\nwrong %ld\n", size, all_wrong);
    free(out);
    MPI_Finalize();
    return 0;
}
