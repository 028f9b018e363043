/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calls.c - how long MPI calls take that do nothing but communicate: for bench/mpi/waits.py.
 * Plain MPI.
 *
 *   calls SECONDS CALL...     each CALL is measured for about so long, and prints "CALL_us number",
 *                             the mean, and "CALL_best_us number", that of the fastest batch;
 *                             with two ranks also "CALL_line_us", "CALL_best_line_us": how long a
 *                             cache line took from one to the other and back at that time
 *
 * Where the cores are virtual, they may be two threads of one core now and far apart the next
 * second, and short messages take three times as long: only runs with like lines can be compared.
 *
 * Batches double until one takes a hundredth of the time; only those of the last length count, so
 * that what a first call costs does not.  Rank 0 decides for all, outside of what is timed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* A page that ranks 0 and 1 share without MPI's help; NULL with more ranks, or none. */
static _Atomic int *shared_page(void)
{
    long file[2] = {-1, -1};
    char path[64];
    if (size != 2)
        return NULL;
    if (rank == 0) {
        int fd = memfd_create("line", MFD_CLOEXEC);
        file[0] = getpid();
        file[1] = fd >= 0 && ftruncate(fd, sysconf(_SC_PAGESIZE)) == 0 ? fd : -1;
    }
    MPI_Bcast(file, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/proc/%ld/fd/%ld", file[0], file[1]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      0);
    int mine = page != MAP_FAILED, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    close(fd);
    return all ? page : NULL;
}

/* The shortest of some means of a line's journeys, in us: it tells where the cores are, not what
 * else runs on them.  release, acquire: as any flag; only the journey is of interest. */
static double line_us(_Atomic int *line)
{
    enum { MEANS = 8, JOURNEYS = 16 };
    double best = 0;
    for (int m = 0; line && m < MEANS; m++) {
        double start = MPI_Wtime();
        for (int i = 0; i < JOURNEYS; i++) {
            if (rank == 0)
                atomic_store_explicit(line, 2 * i + 1, memory_order_release);
            while (atomic_load_explicit(line, memory_order_acquire) != 2 * i + 1 + (rank == 0))
                continue;
            if (rank == 1)
                atomic_store_explicit(line, 2 * i + 2, memory_order_release);
        }
        double us = (MPI_Wtime() - start) / JOURNEYS * 1e6;
        if (best == 0 || us < best)
            best = us;
    }
    return best;
}

static double one_batch(const struct call *call, long count)
{
    double start = MPI_Wtime();
    for (long i = 0; i < count; i++)
        call->once(i);
    return MPI_Wtime() - start;
}

/* Batches of one length, as measured by rank 0; seconds. */
struct batches {
    double spent, line, best, best_line;
    long calls, count;
};

static void note(struct batches *b, double t, double line, long calls)
{
    b->spent += t;
    b->line += line;
    b->calls += calls;
    if (b->count++ == 0 || t < b->best) {
        b->best = t;
        b->best_line = line;
    }
}

static void print(const char *name, const struct batches *b)
{
    double n = (double)b->count;
    printf("%s_us %.4f\n%s_best_us %.4f\n", name, b->spent / (double)b->calls * 1e6, name,
           b->best * n / (double)b->calls * 1e6);
    if (size == 2)
        printf("%s_line_us %.4f\n%s_best_line_us %.4f\n", name, b->line / n, name, b->best_line);
}

static void measure(const struct call *call, double seconds, _Atomic int *line)
{
    long plan[2] = {1, LEAST}; /* go on; calls in a batch */
    double all = 0;
    struct batches b = {0};
    one_batch(call, 1);
    while (plan[0]) {
        double t = one_batch(call, plan[1]);
        note(&b, t, line_us(line), plan[1]);
        all += t;
        plan[0] = t < seconds / 100 || all < seconds;
        if (t < seconds / 100) {
            plan[1] *= 2;
            b = (struct batches){0};
        }
        MPI_Bcast(plan, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        print(call->name, &b);
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
    _Atomic int *line = shared_page();
    for (int a = 2; a < argc; a++)
        for (unsigned c = 0; c < sizeof calls / sizeof *calls; c++)
            if (strcmp(argv[a], calls[c].name) == 0)
                measure(&calls[c], atof(argv[1]), line);
    long all_wrong = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d\nwrong %ld\n", size, all_wrong);
    free(out);
    MPI_Finalize();
    return 0;
}
