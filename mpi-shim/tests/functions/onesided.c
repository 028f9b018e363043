/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * onesided.c - windows of every kind, their synchronisation, operations with requests, and a target
 * that stays in a wait or computes while another rank locks it.
 */
#include "expect.h"

#if MPI_VERSION >= 4
#define LARGE(call) call
#else
#define LARGE(call) (void)0
#endif

static int next, previous;

static void fences(MPI_Win win, int *memory, const char *what)
{
    int value = world_rank + 1;
    memory[0] = -1;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(memory[0] == previous + 1, what);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* Each rank exposes its memory to the one before, which puts into it. */
static void posts(MPI_Win win, int *memory)
{
    int value = world_rank + 10, flag;
    MPI_Group world, before, after;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &previous, &before);
    MPI_Group_incl(world, 1, &next, &after);
#ifdef OPEN_MPI /* 4.1 waits for ever in windows of shared memory, for no rank */
    int turns = 2;
#else
    int turns = 3;
#endif
    for (int turn = 0; turn < turns; turn++) {
        memory[0] = -1;
        if (turn == 2) {
            MPI_Win_post(before, MPI_MODE_NOCHECK, win);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_start(after, MPI_MODE_NOCHECK, win);
        } else {
            MPI_Win_post(before, 0, win);
            MPI_Win_start(after, 0, win);
        }
        MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
        MPI_Win_complete(win);
        for (flag = 0; turn == 1 && !flag;)
            MPI_Win_test(win, &flag);
        if (turn != 1)
            MPI_Win_wait(win);
        expect(memory[0] == previous + 10, turn == 1 ? "Win_test" : "Win_wait");
    }
#ifndef OPEN_MPI
    MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
#endif
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Group_free(&world);
}

/* A counter at rank 0 that all add to. */
static void locks(MPI_Win win, int *memory)
{
    int one = 1, got = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, win);
    memory[0] = memory[1] = 0;
    MPI_Win_unlock(world_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_flush_local(0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_flush_all(win);
    expect(got == 3 * world_size, "sum by MPI_Accumulate under MPI_Win_lock");
    MPI_Get(&got, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush_local_all(win);
    expect(got == 3 * world_size, "the other sum");
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

#define WITH_REQUESTS(S)                                                                           \
    do {                                                                                           \
        int value = world_rank + 20, got = -1, before = -1;                                        \
        MPI_Request r;                                                                             \
        MPI_Win_lock_all(0, win);                                                                  \
        MPI_Rput##S(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win, &r);                             \
        MPI_Wait(&r, MPI_STATUS_IGNORE);                                                           \
        MPI_Win_flush(next, win);                                                                  \
        MPI_Raccumulate##S(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win, &r);             \
        MPI_Wait(&r, MPI_STATUS_IGNORE);                                                           \
        MPI_Win_flush(next, win);                                                                  \
        MPI_Rget_accumulate##S(&value, 1, MPI_INT, &before, 1, MPI_INT, next, 0, 1, MPI_INT,       \
                               MPI_REPLACE, win, &r);                                              \
        MPI_Wait(&r, MPI_STATUS_IGNORE);                                                           \
        MPI_Win_flush(next, win);                                                                  \
        MPI_Rget##S(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win, &r);                               \
        MPI_Wait(&r, MPI_STATUS_IGNORE);                                                           \
        MPI_Win_unlock_all(win);                                                                   \
        expect(before == 2 * value && got == value, "operations with requests" #S);                \
        MPI_Barrier(MPI_COMM_WORLD);                                                               \
    } while (0)

static void requests(MPI_Win win)
{
    WITH_REQUESTS();
    LARGE(WITH_REQUESTS(_c));
}

static void all_on(MPI_Win win, int *memory, const char *what)
{
    fences(win, memory, what);
    posts(win, memory);
    locks(win, memory);
    requests(win);
    MPI_Win_free(&win);
    expect(win == MPI_WIN_NULL, "MPI_Win_free");
}

static void dynamic(void)
{
    static int memory[4];
    MPI_Aint mine, address;
    MPI_Info info;
    MPI_Win win;
    int value = world_rank + 30;
    memory[0] = -1;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Info_create(&info);
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    MPI_Win_attach(win, memory, sizeof memory);
    MPI_Get_address(memory, &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, previous, 1, &address, 1, MPI_AINT, next, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, next, address, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(memory[0] == previous + 30, "dynamic window");
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

static void compute_ms(double ms)
{
    double until = MPI_Wtime() + ms / 1000;
    while (MPI_Wtime() < until)
        ;
}

/* All but rank 0 are somewhere else when rank 0 locks, puts into and unlocks each of them. */
static void passive_target(int where)
{
    int *memory, got = 0;
    MPI_Win win;
    MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        compute_ms(5); /* they sleep by now */
        for (int r = 1; r < world_size; r++)
            for (int i = 0; i < 3; i++) {
                int value = 100 * r + i;
                MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
                MPI_Put(&value, 1, MPI_INT, r, 0, 1, MPI_INT, win);
                MPI_Win_unlock(r, win);
            }
        for (int r = 1; where == 0 && r < world_size; r++)
            MPI_Send(&r, 1, MPI_INT, r, 7, MPI_COMM_WORLD);
    } else if (where == 0)
        MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (where == 2)
        compute_ms(20);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
    expect(world_rank == 0 || memory[0] == 100 * world_rank + 2, "passive target");
    MPI_Win_unlock(world_rank, win);
    MPI_Win_free(&win);
}

/* A send that needs progress of its sender, which is in a barrier to which the receiver comes
 * late. */
static void rendezvous_behind_barrier(void)
{
    enum { BIG = 2000000 };
    int *data = calloc(BIG, sizeof *data);
    MPI_Request r = MPI_REQUEST_NULL;
    if (world_rank == 0 && world_size > 1) {
        data[BIG - 1] = 77;
        MPI_Isend(data, BIG, MPI_INT, 1, 8, MPI_COMM_WORLD, &r);
    } else if (world_rank == 1)
        MPI_Recv(data, BIG, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    expect(world_rank > 1 || world_size == 1 || data[BIG - 1] == 77, "rendezvous behind a barrier");
    free(data);
}

int main(int argc, char **argv)
{
    int *memory, mine[16];
    MPI_Win win;
    start(&argc, &argv, MPI_THREAD_SINGLE);
    next = (world_rank + 1) % world_size;
    previous = (world_rank + world_size - 1) % world_size;
    MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    all_on(win, mine, "Win_create");
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    all_on(win, memory, "Win_allocate");
    MPI_Win_allocate_shared(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    all_on(win, memory, "Win_allocate_shared");
#if MPI_VERSION >= 4
    MPI_Win_create_c(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    all_on(win, mine, "Win_create_c");
    MPI_Win_allocate_c(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    all_on(win, memory, "Win_allocate_c");
    MPI_Win_allocate_shared_c(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    all_on(win, memory, "Win_allocate_shared_c");
#endif
#ifndef OPEN_MPI /* 4.1 has no windows of one rank */
    MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
#endif
    dynamic();
    for (int where = 0; where < 3; where++)
        passive_target(where);
    rendezvous_behind_barrier();
    return finish();
}
