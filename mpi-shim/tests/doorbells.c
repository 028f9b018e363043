/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * doorbells.c - ranks that keep each other waiting for random times, and wait in every way there
 * is: for testsuite/mpi/test_doorbells.py.
 *
 *   doorbells SEED ROUNDS [LIMIT]    fails when one wait takes more than LIMIT seconds
 *   doorbells threads                MPI_THREAD_MULTIPLE: see two_waits
 *
 * All ranks draw the same numbers, so that each knows what the others do in a round: a few are
 * late, by anything from nothing to some milliseconds, about as long as a lend takes as often as
 * not; then all do the same collective, or pairs exchange a message that is waited for by a
 * call of their own choice.  Prints "done" from rank 0 when every number was right.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wstringop-overflow" /* MPI_STATUSES_IGNORE */

static int rank, size;
static double limit_s = 1e9;
static unsigned shared_seed;

static unsigned draw(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16 & 0x7fff;
}

static void require(int good, const char *what, long round)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, round %ld: %s\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

/* Asleep or busy; from next to nothing to 4 ms, short ones more often. */
static void be_late(unsigned number)
{
    unsigned us = 4000u >> number % 12;
    if (number & 0x1000) {
        usleep(us);
        return;
    }
    double until = MPI_Wtime() + us * 1e-6;
    while (MPI_Wtime() < until)
        ;
}

static void collective(long round, unsigned which, int root)
{
    int mine = (int)round + rank, sum = -1, all = (int)round * size + size * (size - 1) / 2;
    int value = rank == root ? (int)round : -1;
    MPI_Request r;
    switch (which % 5) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        require(sum == all, "wrong sum", round);
        break;
    case 2:
        MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
        require(value == round, "wrong broadcast", round);
        break;
    case 3:
        MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        require(rank != root || sum == all, "wrong sum at the root", round);
        break;
    default:
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        require(sum == all, "wrong sum of a non-blocking reduction", round);
    }
}

static int receive(int from, int tag, unsigned how)
{
    int value = -1, flag = 0, index;
    MPI_Request r;
    if (how % 7 == 0 || how % 7 == 1) {
        if (how % 7 == 1)
            MPI_Probe(from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return value;
    }
    if (how % 7 == 2) {
        while (!flag)
            MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return value;
    }
    MPI_Irecv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &r);
    if (how % 7 == 3)
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    else if (how % 7 == 4)
        MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    else if (how % 7 == 5)
        MPI_Waitany(1, &r, &index, MPI_STATUS_IGNORE);
    while (how % 7 == 6 && !flag)
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    return value;
}

/* Every rank sends to the one `step` after it; even ranks send first. */
static void messages(long round, int step, unsigned how)
{
    int to = (rank + step) % size, from = (rank + size - step) % size, value = (int)round + rank;
    int tag = (int)(round % 1000);
    MPI_Request r = MPI_REQUEST_NULL;
    if (how & 0x100)
        MPI_Issend(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &r);
    else
        MPI_Send(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
    require(receive(from, tag, how + (unsigned)rank) == (int)round + from, "wrong message", round);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void rounds(long count)
{
    for (long i = 0; i < count; i++) {
        unsigned late_rank = draw(&shared_seed), how = draw(&shared_seed), late = 0;
        int root = (int)(draw(&shared_seed) % (unsigned)size);
        for (int r = 0; r <= rank; r++)
            late = draw(&shared_seed);
        for (int r = rank + 1; r < size; r++)
            draw(&shared_seed);
        if (late % 4 == 0 || late_rank % (unsigned)size == (unsigned)rank)
            be_late(late);
        double start = MPI_Wtime();
        if (how & 0x200)
            collective(i, how, root);
        else
            messages(i, 1 + root % (size > 1 ? size - 1 : 1), how);
        require(MPI_Wtime() - start < limit_s, "a wait took too long", i);
    }
}

/* --- threads: two wait at a time, in communicators of their own, while a third one computes.
 * Each has a message from the next rank to wait for, which that one sends late. */

static MPI_Comm comms[2];
static atomic_int stop;
static double worked_s;

static double thread_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *compute(void *unused)
{
    volatile double x = 0;
    while (!atomic_load(&stop))
        x += 1;
    worked_s = thread_cpu_s();
    return unused;
}

static void *wait_often(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    unsigned seed = (unsigned)rank + 1;
    for (int i = 0; i < 60; i++) {
        int got = -1, all = -1, mine = i + rank;
        be_late(draw(&seed));
        MPI_Sendrecv(&mine, 1, MPI_INT, next, 1, &got, 1, MPI_INT, previous, 1, comm,
                     MPI_STATUS_IGNORE);
        require(got == i + previous, "wrong message in a thread", i);
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
        require(all == i, "wrong minimum in a thread", i);
    }
    return NULL;
}

static void two_waits(void)
{
    pthread_t worker, second;
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&worker, NULL, compute, NULL);
    pthread_create(&second, NULL, wait_often, &comms[1]);
    wait_often(&comms[0]);
    pthread_join(second, NULL);
    atomic_store(&stop, 1);
    pthread_join(worker, NULL);
    require(worked_s > 0, "the thread that computes got no core", 0);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 && strcmp(argv[1], "threads") == 0, provided;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 3)
        limit_s = atof(argv[3]);
    if (threads) {
        require(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE", 0);
        two_waits();
    } else if (argc > 2) {
        shared_seed = (unsigned)atoi(argv[1]);
        rounds(atol(argv[2]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("done");
    MPI_Finalize();
    return 0;
}
