/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tasks.c - two ranks of which the first can only go on if a thread that waits in MPI runs ready
 * OpenMP tasks (invade --mpi-tasks).  The other rank sends what the thread waits for after a
 * message from tasks that no other thread can run.  Prints "ok" at the end, on rank 0.
 *
 *   tasks call    the waiting thread has created the tasks itself
 *   tasks task    it waits inside a task, and the others are its siblings
 *   tasks nested  the tasks wait in MPI as well
 */
#include <mpi.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TASKS = 4, ANSWER = 100 };

static _Atomic bool over;

static int answer(int tag)
{
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}

/* One of the tasks: tells rank 1; where it waits itself, the next one must run in its wait. */
static void tell(int number, bool wait)
{
    MPI_Send(&number, 1, MPI_INT, 1, number, MPI_COMM_WORLD);
    if (wait && answer(ANSWER + 1 + number) != number)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void make_tasks(bool wait)
{
    for (int i = 0; i < TASKS; i++)
#pragma omp task firstprivate(i)
        tell(i, wait);
}

/* The other threads are busy until all is over, so they run no task. */
static void keep_busy(void)
{
    while (!atomic_load(&over))
        usleep(1000);
}

static void first_rank(const char *how)
{
    int got = -1;
#pragma omp parallel num_threads(2) shared(got)
    {
        if (omp_get_thread_num() == 0) {
            if (strcmp(how, "task") == 0) {
                make_tasks(false);
#pragma omp task shared(got) if (0)
                got = answer(ANSWER);
            } else {
                make_tasks(strcmp(how, "nested") == 0);
                got = answer(ANSWER);
            }
            atomic_store(&over, true);
        } else
            keep_busy();
    }
    puts(got == TASKS ? "ok" : "wrong answer");
}

/* Answers when all have told it something, the last one first. */
static void second_rank(bool wait)
{
    for (int i = 0; i < TASKS; i++) {
        int number;
        MPI_Recv(&number, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = TASKS - 1; wait && i >= 0; i--)
        MPI_Send(&i, 1, MPI_INT, 0, ANSWER + 1 + i, MPI_COMM_WORLD);
    int all = TASKS;
    MPI_Send(&all, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *how = argc > 1 ? argv[1] : "call";
    if (rank == 0)
        first_rank(how);
    else if (rank == 1)
        second_rank(strcmp(how, "nested") == 0);
    MPI_Finalize();
    return 0;
}
