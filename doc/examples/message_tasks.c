/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * message_tasks.c - the example of invasive-tasks(7): the cells inside of a rank's part are
 * computed while the message with its neighbour's border is on its way.  Two ranks or more:
 *
 *   mpicc -fopenmp message_tasks.c -o message_tasks -linvasive-tasks-mpich
 *   mpiexec -n 2 ./message_tasks          or: invade mpiexec -n 2 ./message_tasks
 */
#include <invasive-tasks.h>
#include <stdio.h>

enum { CELLS = 100, STEPS = 100 };

static double border;
static int posted;

static double compute(double value)
{
    return 2 * value - 1;
}

/* One step: returns the sum of what the cells have become. */
static double step(int to, int from)
{
    double inside = 0, outside = 0, mine = 1;
    MPI_Request request[2];
    omp_event_handle_t arrived;

#pragma omp task detach(arrived) depend(out : border)
#pragma omp atomic
    posted++; /* a compiler may leave a task out that does nothing */
    MPI_Irecv(&border, 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(&mine, 1, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &request[1]);
    inv_fulfil_when_all(2, request, MPI_STATUSES_IGNORE, arrived);

#pragma omp task depend(in : border) shared(outside)
    outside = compute(border);
    for (int i = 1; i < CELLS; i++) {
#pragma omp task shared(inside)
        {
            double value = compute(1);
#pragma omp atomic
            inside += value;
        }
    }
#pragma omp taskwait
    return inside + outside;
}

int main(int argc, char **argv)
{
    int level, rank, ranks;
    double sum = 0, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#pragma omp parallel
#pragma omp master
    for (int i = 0; i < STEPS; i++)
        sum += step((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %.0f\n", all);
    MPI_Finalize();
    return 0;
}
