/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nodes.c - plain MPI+OpenMP for testsuite/mpi/test_nodes.py: ranks on several hosts compute
 * unequal shares, by sleeping, and wait for each other in every way that crosses hosts.
 *
 *   nodes ITERATIONS MS:MS:...   rank r computes MS[r % n] milliseconds of core time an iteration
 *   nodes ... FILE MORE          then waits until there is such a file, and iterates again
 *   nodes hang                   prints "RANK PID" for each rank, then all but rank 0 wait for it
 *
 * Each rank prints "rank R host NAME cores N"; rank 0 prints "sum S" when all went well.
 */
#include <mpi.h>
#include <omp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 16, BIG = 100000, FINALIZE_LIMIT_S = 3, FILE_LIMIT_S = 40 };

#ifdef MPICH
enum { MAY_HANG = true };
#else
enum { MAY_HANG = false };
#endif

static int rank, size;
static int big[2][BIG];

static void require(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static void compute(int ms)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < PIECES; i++)
        usleep((useconds_t)(ms * 1000 / PIECES));
}

/* A message that needs its sender awake, to the next rank and from the previous one. */
static void ring(int i)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    big[0][0] = big[0][BIG - 1] = rank * 1000 + i;
    MPI_Sendrecv(big[0], BIG, MPI_INT, next, 1, big[1], BIG, MPI_INT, previous, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    require(big[1][0] == previous * 1000 + i && big[1][BIG - 1] == big[1][0], "wrong message");
}

static void from_first(int i)
{
    int value = rank == 0 ? i : -1;
    if (rank == 0)
        for (int r = 1; r < size; r++)
            MPI_Send(&value, 1, MPI_INT, r, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    require(value == i, "wrong value from rank 0");
}

static long iterate(int iterations, const int *ms, int n, MPI_Comm host)
{
    long sum = 0;
    for (int i = 0; i < iterations; i++) {
        long mine = (long)(rank + 1) * i, all = 0;
        compute(ms[rank % n]);
        MPI_Barrier(host);
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        require(all == (long)size * (size + 1) / 2 * i, "wrong sum");
        sum += all;
        from_first(i);
        if (i % 8 == 0)
            ring(i);
        if (i % 5 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    return sum;
}

/* Waits until the test, which observes from outside, has seen what it needs. */
static void wait_for_file(const char *name)
{
    for (int i = 0; rank == 0 && i < FILE_LIMIT_S * 100 && access(name, F_OK) != 0; i++)
        usleep(10000);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void hang(void)
{
    int value;
    printf("%d %d\n", rank, (int)getpid());
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        pause();
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void give_up(int number)
{
    (void)number;
    _exit(0);
}

/* MPICH before 4.2 over UCX hangs here every other time when ranks of different hosts have talked,
 * with us or without (github.com/pmodels/mpich/pull/6596).  All that matters is over.  When a rank
 * gives up first, MPICH's launcher sends SIGUSR1 to the other ranks.  When a rank dies of that, it
 * sends SIGKILL to the others, and to an invade that is writing its report. */
static void finalize(bool may_hang)
{
    fflush(NULL);
    signal(SIGALRM, give_up);
    if (may_hang) {
        signal(SIGUSR1, give_up);
        alarm(FINALIZE_LIMIT_S);
    }
    MPI_Finalize();
    alarm(0);
}

int main(int argc, char **argv)
{
    int ms[64], n = 0, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "hang") == 0)
        hang();
    char *rest = argc > 2 ? argv[2] : (char *)"1", *word;
    while ((word = strsep(&rest, ":")) != NULL && n < 64)
        ms[n++] = atoi(word);
    gethostname(host, sizeof host);
    length = (int)strlen(host);
    MPI_Comm here;
    MPI_Comm_split(MPI_COMM_WORLD, host[length - 1], rank, &here);
    long sum = iterate(argc > 1 ? atoi(argv[1]) : 10, ms, n, here);
    if (argc > 4) {
        wait_for_file(argv[3]);
        sum += iterate(atoi(argv[4]), ms, n, here);
    }
    printf("rank %d host %s cores %d\n", rank, host, omp_get_num_procs());
    if (rank == 0)
        printf("sum %ld\n", sum);
    int here_size;
    MPI_Comm_size(here, &here_size);
    MPI_Comm_free(&here);
    finalize(MAY_HANG && here_size < size);
    return 0;
}
