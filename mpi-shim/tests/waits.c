/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * waits.c - an MPI program whose waits and work are known, for test_invade_report.py; the first
 * argument says what it does.
 *
 *   places     ranks wait 60, 2 and 1 times as long in three functions
 *   work       rank r computes (r + 1) * 100 ms of CPU time, in steps that end in a barrier
 *   steps      150 iterations of 2 * (r + 1) ms of CPU time and a barrier
 *   slow       30 iterations in which the last rank sleeps for 40 ms before each of two calls
 *   pointer    one call through a pointer, of MPI_Send and MPI_Ssend in turns
 *   many       MPI_Iprobe called once from each of 400 places
 *   polls      waits in a loop of MPI_Test, until rank 1 sees that it sleeps there
 *   polled     loops of tests: as above; of two functions in turns; with sleeps, and with work
 *              between the tests
 *   threads    four threads wait at the same place at the same time
 *   killed     rank 1 waits, asleep for 300 ms, and is killed; the others wait for it, asleep
 *   untouched  prints how many bytes of the process's room for a record are not 0
 */
#define _GNU_SOURCE
#include "asleep.h"
#include "burn.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wstringop-overflow" /* MPI_STATUSES_IGNORE */

static int rank, size;

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Tells a rank which rank is going to wait for it. */
static void tell_pid(int to)
{
    int pid = (int)getpid();
    MPI_Send(&pid, 1, MPI_INT, to, 2, MPI_COMM_WORLD);
}

static __attribute__((noinline)) int pid_of(int from)
{
    int pid;
    MPI_Recv(&pid, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return pid;
}

/* Rank 0 waits for a message that rank 1 sends after so many milliseconds. */
static __attribute__((noinline)) int late_ms(long ms)
{
    if (rank == 1)
        sleep_ms(ms);
    return rank;
}

static __attribute__((noinline)) void wait_long(void)
{
    int x = 0;
    if (late_ms(60) == 1)
        MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    else if (rank == 0)
        MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static __attribute__((noinline)) void wait_some(void)
{
    late_ms(20);
    MPI_Barrier(MPI_COMM_WORLD);
    __asm__ volatile(""); /* no tail call: it would return to our caller */
}

static __attribute__((noinline)) void wait_short(void)
{
    int x = late_ms(10);
    MPI_Bcast(&x, 1, MPI_INT, 1, MPI_COMM_WORLD);
    __asm__ volatile("");
}

static void scene_places(void)
{
    for (int i = 0; i < 20; i++) {
        wait_long();
        if (i % 10 == 0)
            wait_some();
        if (i % 10 == 5)
            wait_short();
    }
}

static void scene_work(void)
{
    for (int i = 0; i < 10; i++) {
        burn_ms(10 * (rank + 1));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void scene_steps(void)
{
    for (int i = 0; i < 150; i++) {
        burn_ms(2 * (rank + 1));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void scene_slow(void)
{
    for (int i = 0; i < 30; i++) {
        usleep(rank == size - 1 ? 40000 : 0);
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(rank == size - 1 ? 40000 : 0);
        MPI_Allreduce(&rank, &(int){0}, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void scene_pointer(void)
{
    int (*volatile send[2])(const void *, int, MPI_Datatype, int, int,
                            MPI_Comm) = {MPI_Send, MPI_Ssend};
    for (int i = 0, x = 0; i < 30; i++)
        if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 1)
            send[i % 3 == 0](&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

#define PROBE MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
#define TEN(x) x x x x x x x x x x

static void scene_many(void)
{
    int flag;
    TEN(TEN(PROBE)) TEN(TEN(PROBE)) TEN(TEN(PROBE)) TEN(TEN(PROBE))
}

/* Rank 1 sends when rank 0 has been asleep for so long.  True in rank 0, which is to test now. */
static bool begin_loop(int ms, int *x, MPI_Request *request)
{
    if (rank == 1) {
        until_asleep_ms(pid_of(0), ms);
        MPI_Send(&ms, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 0) {
        tell_pid(1);
        MPI_Irecv(x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, request);
    }
    return rank == 0;
}

static __attribute__((noinline)) void poll_for_it(int ms)
{
    int x, flag = 0;
    MPI_Request request;
    if (begin_loop(ms, &x, &request))
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static __attribute__((noinline)) void poll_in_turns(int ms)
{
    int x, flag = 0, all = 0;
    MPI_Request request;
    bool looks = begin_loop(ms, &x, &request);
    while (looks && !flag && !all) {
        MPI_Testall(1, &request, &all, MPI_STATUSES_IGNORE);
        if (!all)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

static __attribute__((noinline)) void nap_for_it(int ms)
{
    int x, flag = 0;
    MPI_Request request;
    bool looks = begin_loop(ms, &x, &request);
    while (looks && !flag) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

/* 200 probes for a message that no rank sends, with work between them. */
static __attribute__((noinline)) void look_and_work(void)
{
    for (int i = 0, flag; i < 200 && rank == 0; i++) {
        MPI_Iprobe(1, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        burn_ms(0.5);
    }
}

static void scene_polled(void)
{
    poll_for_it(100);
    poll_in_turns(200);
    nap_for_it(200);
    look_and_work();
}

static void *wait_in_thread(void *tag)
{
    int x = 0;
    for (int i = 0; i < 50; i++)
        if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 1, (int)(long)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 1)
            MPI_Send(&x, 1, MPI_INT, 0, (int)(long)tag, MPI_COMM_WORLD);
    return NULL;
}

static void scene_threads(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, wait_in_thread, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void scene_killed(void)
{
    int pid = (int)getpid();
    if (rank == 0) {
        until_asleep_ms(pid_of(1), 300);
        MPI_Send(&pid, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        tell_pid(0);
        MPI_Recv(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        until_asleep_ms(pid, 50);
        raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Records are at the end of the core table (libinvasive/table/table.h), from this offset on. */
static void scene_untouched(unsigned long records)
{
    char line[512];
    unsigned long from, to, used = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "memfd:invasive-core-table") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            for (const char *c = (const char *)from + records; c < (const char *)to; c++)
                used += *c != 0;
    if (f)
        fclose(f);
    printf("%lu\n", used);
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "";
    int level = strcmp(scene, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(scene, "places"))
        scene_places();
    else if (!strcmp(scene, "work"))
        scene_work();
    else if (!strcmp(scene, "steps"))
        scene_steps();
    else if (!strcmp(scene, "slow"))
        scene_slow();
    else if (!strcmp(scene, "pointer"))
        scene_pointer();
    else if (!strcmp(scene, "many"))
        scene_many();
    else if (!strcmp(scene, "polls"))
        poll_for_it(50);
    else if (!strcmp(scene, "polled"))
        scene_polled();
    else if (!strcmp(scene, "threads"))
        scene_threads();
    else if (!strcmp(scene, "killed"))
        scene_killed();
    else if (!strcmp(scene, "untouched"))
        scene_untouched(argc > 2 ? strtoul(argv[2], NULL, 0) : 0);
    MPI_Finalize();
    return 0;
}
