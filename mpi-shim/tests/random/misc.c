/* SPDX-License-Identifier: GPL-3.0-or-later */
/* misc.c - callbacks that MPI makes and that call MPI, and what a program does between calls. */
#include "random.h"

#include <time.h>

/* --- generalised requests */

static int query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return MPI_SUCCESS;
}
static int free_state(void *state)
{
    *(int *)state = -1;
    return MPI_SUCCESS;
}
static int cancel(void *state, int complete)
{
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

void step_grequest(struct world *w)
{
    int state = below(&w->mine, 1) + w->step;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, free_state, cancel, &state, &request);
    if (chance(&w->mine, 50))
        dawdle(w);
    MPI_Grequest_complete(request);
    finish(w, 1, &request, &status);
    note_status(w, "own request", &status, MPI_INT);
    note(w, "state freed %d", state == -1);
}

/* --- attributes */

static int copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    int size = 0;
    (void)key;
    MPI_Comm_size(comm, &size);
    *(int *)extra += size;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    int rank = 0;
    (void)key;
    (void)value;
    MPI_Comm_rank(comm, &rank);
    *(int *)extra += 1000 * (rank + 1);
    return MPI_SUCCESS;
}

void step_attribute(struct world *w)
{
    struct comm *c = pick_comm(w, true);
    int key, seen = 0;
    MPI_Comm copy;
    if (c->side < 0)
        return;
    MPI_Comm_create_keyval(copied, deleted, &key, &seen);
    MPI_Comm_set_attr(c->handle, key, w);
    MPI_Comm_dup(c->handle, &copy);
    if (c->shape != INTER) {
        int mine = 1, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, copy);
        note(w, "in the copy are %d", sum);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_delete_attr(c->handle, key);
    MPI_Comm_free_keyval(&key);
    note(w, "attribute callbacks saw %d", seen);
}

/* --- between calls */

static void compute(double seconds)
{
    double until = MPI_Wtime() + seconds;
    while (MPI_Wtime() < until)
        ;
}

static void region(struct world *w, int threads)
{
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(threads)
    for (int i = 0; i < 2000; i++)
        sum += i;
    require(w, sum == 1999000, "wrong sum in a parallel region");
}

void dawdle(struct world *w)
{
    struct timespec pause = {0, 1000L * below(&w->mine, 2000)};
    switch (below(&w->mine, 4)) {
    case 0:
        compute(below(&w->mine, 2000) * 1e-6);
        break;
    case 1:
        nanosleep(&pause, NULL);
        break;
    case 2:
        region(w, 1 + below(&w->mine, 4));
        break;
    default:
        break;
    }
}
