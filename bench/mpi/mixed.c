/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * mixed.c - ranks that compute, and block outside MPI in several ways, for chaos.
 *
 *   mixed STEPS
 *
 * In each step a rank computes in a loop of OpenMP, and then, each rank something else: sleeps;
 * reads from a pipe into which another thread writes; waits for a child that computes in a loop of
 * OpenMP, and so becomes a process of its own; waits in MPI.  A control point chooses the chunk of
 * the loop.  Prints "checksum", which the steps determine.  A rank ends with 1 when its child has
 * not computed what it should.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "mixed"
#include "steps.h"

enum { PIECES = 48, PIECE_STEPS = 100000, BLOCK_MS = 20, WAYS = 4 };

/* Of invasive.h; NULL in a stock run. */
#pragma weak inv_control_point
int inv_control_point(const char *name, int low, int high, int *value);

static int chunk = 1;

static uint64_t compute(uint64_t seed)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(dynamic, chunk) reduction(+ : sum)
    for (int i = 0; i < PIECES; i++) {
        spin(PIECE_STEPS);
        sum += (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return sum;
}

static void sleep_for(int ms) { sleep_until(now_ns() + ms * 1000000LL); }

static void *write_later(void *end)
{
    sleep_for(BLOCK_MS);
    need(write(*(int *)end, "x", 1) == 1, "write");
    return NULL;
}

static void wait_for_pipe(void)
{
    int ends[2];
    char byte;
    pthread_t thread;
    need(!pipe(ends) && !pthread_create(&thread, NULL, write_later, &ends[1]), "pipe, pthread_create");
    need(read(ends[0], &byte, 1) == 1, "read");
    pthread_join(thread, NULL);
    close(ends[0]);
    close(ends[1]);
}

static void wait_for_child(uint64_t seed, uint64_t expected)
{
    int status;
    pid_t parent = getpid(), child = fork();
    need(child >= 0, "fork");
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() != parent || compute(seed) != expected);
    }
    need(waitpid(child, &status, 0) == child && status == 0, "a child");
}

static uint64_t one_step(uint64_t number, int way)
{
    uint64_t sum = compute(number);
    if (way == 0)
        sleep_for(BLOCK_MS);
    else if (way == 1)
        wait_for_pipe();
    else if (way == 2)
        wait_for_child(number, sum);
    return sum;
}

int main(int argc, char **argv)
{
    int rank;
    uint64_t sum = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; argc == 2 && step < atoi(argv[1]); step++) {
        if (inv_control_point)
            inv_control_point("chunk", 1, 12, &chunk);
        sum = sum * 31 + one_step((uint64_t)(step * 1000 + rank), (step + rank) % WAYS);
        MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    if (rank == 0)
        printf("checksum %016llx\n", (unsigned long long)all);
    MPI_Finalize();
    return 0;
}
