/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * scenes.c - small MPI programs in one, chosen by the first argument: what happens around
 * waits.  Each prints "done" from rank 0 when all went well.
 *
 *   poll       waits written as loops of MPI_Test*, MPI_Iprobe
 *   compute    polls with computing in between, and counts on being let alone
 *   abort      rank 1 calls MPI_Abort(7) while the others wait
 *   hang       rank 0 prints its pid and waits for ever
 *   threads    MPI_THREAD_MULTIPLE: two threads a rank, each waits in its own communicator
 *   exit       returns 3 from main after MPI_Finalize
 *   uneven     one rank computes much longer than the others before each collective
 *   owned      MPI_THREAD_MULTIPLE: an attribute frees a communicator and a window
 */
#include "burn.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wstringop-overflow" /* MPI_STATUSES_IGNORE */

static int rank, size;

static void compute_ms(double ms)
{
    double until = MPI_Wtime() + ms / 1000;
    while (MPI_Wtime() < until)
        ;
}

static void require(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

/* One round of each way to poll, for a message from rank 0 that comes late. */
static void poll_once(int way)
{
    int value = -1, flag = 0, which = 0, count = 0, index;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        compute_ms(5);
        for (int r = 1; r < size; r++)
            MPI_Send(&way, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
        return;
    }
    if (way == 4) {
        while (!flag)
            MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
        require(value == way, "wrong message after MPI_Iprobe");
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    while (!flag && count == 0) {
        if (way == 0)
            MPI_Test(&request, &flag, &status);
        else if (way == 1)
            MPI_Testall(1, &request, &flag, &status);
        else if (way == 2)
            MPI_Testany(1, &request, &which, &flag, &status);
        else
            MPI_Testsome(1, &request, &count, &index, &status);
    }
    require(value == way, "wrong message after a test");
    require(request == MPI_REQUEST_NULL, "the request is still there");
}

static void scene_poll(void)
{
    for (int i = 0; i < 20; i++)
        poll_once(i % 5);
    int flag = 0, sum = 0;
    MPI_Request request;
    if (rank == 0)
        compute_ms(20);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    require(sum == size * (size - 1) / 2, "wrong sum");
}

/* Tests between pieces of work, until rank 0's message comes. */
static void scene_compute(void)
{
    int value = 0, flag = 0;
    MPI_Request request;
    if (rank == 0) {
        compute_ms(50);
        for (int r = 1; r < size; r++)
            MPI_Send(&size, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &flag, MPI_STATUS_IGNORE), !flag)
        compute_ms(0.1);
    require(value == size, "wrong message");
}

static void scene_abort(void)
{
    if (rank == 1) {
        compute_ms(20);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void scene_hang(void)
{
    int value;
    if (rank == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *thread_work(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    long next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (long i = 0; i < 200; i++) {
        long got = -1, sum = 0, mine = rank + i;
        MPI_Sendrecv(&mine, 1, MPI_LONG, (int)next, 1, &got, 1, MPI_LONG, (int)previous, 1, comm,
                     MPI_STATUS_IGNORE);
        require(got == previous + i, "wrong message in a thread");
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        require(sum == size * (size - 1) / 2 + size * i, "wrong sum in a thread");
    }
    return NULL;
}

static void scene_threads(void)
{
    MPI_Comm comms[2];
    pthread_t second;
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&second, NULL, thread_work, &comms[1]);
    thread_work(&comms[0]);
    pthread_join(second, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

static void scene_uneven(void)
{
    for (int i = 0; i < 30; i++) {
        int value = i, sum = 0;
        burn_ms(rank == 0 ? 9 : 1);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        require(sum == i * size, "wrong sum");
    }
}

#ifdef OPEN_MPI /* of which 4.1 has no windows with MPI_THREAD_MULTIPLE */
enum { WINDOWS = 0 };
#else
enum { WINDOWS = 1 };
#endif

/* What a communicator's attribute owns goes with it, as in mpi4py and PETSc. */
struct owned {
    MPI_Comm comm;
    MPI_Win win;
};

static int free_owned(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    struct owned *owned = value;
    if (owned->comm != MPI_COMM_NULL)
        MPI_Comm_free(&owned->comm);
    if (WINDOWS)
        MPI_Win_free(&owned->win);
    return MPI_SUCCESS;
}

/* On rank 0 the handles that the attribute's function frees are soon those of a larger
 * communicator and a smaller window. */
static void scene_owned(void)
{
    int key, one = 1, sum = 0;
    struct owned owned = {.comm = MPI_COMM_NULL};
    MPI_Comm owner;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_owned, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &owner);
    if (rank == 0) {
        MPI_Comm_dup(MPI_COMM_SELF, &owned.comm);
        MPI_Barrier(owned.comm);
    }
    if (WINDOWS) {
        MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &owned.win);
        MPI_Win_fence(0, owned.win);
    }
    MPI_Comm_set_attr(owner, key, &owned);
    MPI_Comm_free(&owner);

    MPI_Comm world[3];
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &world[i]);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world[i]);
        require(sum == size, "wrong sum");
    }
    if (WINDOWS) {
        MPI_Win alone;
        MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &alone);
        for (int i = 0; i <= rank; i++)
            MPI_Win_fence(0, alone);
        MPI_Win_free(&alone);
    }
    for (int i = 0; i < 3; i++)
        MPI_Comm_free(&world[i]);
    MPI_Comm_free_keyval(&key);
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {{"poll", scene_poll},    {"compute", scene_compute}, {"abort", scene_abort},
              {"hang", scene_hang},    {"threads", scene_threads}, {"exit", NULL},
              {"uneven", scene_uneven}, {"owned", scene_owned}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int multiple = strcmp(name, "threads") == 0 || strcmp(name, "owned") == 0;
    int provided, required = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, required, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    require(provided >= required, "no such thread level");
    for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(name, scenes[i].name) == 0 && scenes[i].play)
            scenes[i].play();
    MPI_Finalize();
    if (rank == 0)
        puts("done");
    return strcmp(name, "exit") == 0 ? 3 : 0;
}
