/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * check.c - how wrappers wait: they give a check, or a request, and the wait engine does the rest.
 *
 * A check calls a non-blocking function once.  A blocking function becomes a check and then a wait
 * (shim_check_and_wait), a test becomes one check and, in a streak of failed tests, a short wait
 * (shim_check_once).
 */
#include "mpi-shim/wait/check.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/wait/poll.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/tasks.h"
#include "mpi-shim/wait/wait.h"
#include "mpi-shim/ranks/world.h"

void shim_wait(struct shim_wait *w, const void *call_site)
{
    if (!shim_world.tasks_wanted || !shim_tasks_wait(w, call_site))
        shim_wait_idle(w, call_site);
}

int shim_check_and_wait(shim_check *check, void *args, const void *call_site)
{
    struct shim_wait wait = {.done = check, .arg = args};
    shim_workload_call(call_site);
    if (!check(&wait))
        shim_wait(&wait, call_site);
    return wait.result;
}

int shim_check_once(shim_check *check, void *args, const void *call_site)
{
    struct shim_wait wait = {.done = check, .arg = args};
    shim_poll_begin();
    shim_thread.testing = true;
    bool done = check(&wait);
    if (!done && shim_poll_failed())
        done = shim_poll_wait(&wait);
    shim_thread.testing = false;
    if (done)
        shim_poll_hit(call_site);
    return wait.result;
}

/* --- waiting for one request */

static bool check_request(struct shim_wait *w)
{
    struct {
        MPI_Request *request;
        MPI_Status *status;
    } *a = w->arg;
    int flag = 0;
    w->result = shim_pmpi.Test(a->request, &flag, a->status);
    return flag || w->result != MPI_SUCCESS;
}

int shim_wait_request(MPI_Request *request, MPI_Status *status, struct shim_comm *comm,
                      bool at_arrival, const void *call_site)
{
    struct {
        MPI_Request *request;
        MPI_Status *status;
    } args = {request, status};
    struct shim_wait wait = {
        .done = check_request, .arg = &args, .comm = comm, .at_arrival = at_arrival};
    if (!check_request(&wait))
        shim_wait(&wait, call_site);
    return wait.result;
}

int shim_wait_one(MPI_Request *request, MPI_Status *status, int domain_rank, const void *call_site)
{
    shim_workload_call(call_site);
    int result = shim_wait_request(request, status, NULL, false, call_site);
    shim_ring(domain_rank);
    return result;
}

/* Rings the ranks that sleep in a collective of the communicator. */
static void ring_board_sleepers(const struct shim_comm *c)
{
    if (c->header)
        for (int r = 0; r < c->size; r++)
            if (r != c->rank && atomic_load_explicit(&c->line[r].sleeping, memory_order_acquire))
                shim_ring(c->domain_rank_of[r]);
    if (!c->header)
        shim_ring_comm(c);
}

int shim_wait_collective(MPI_Request *request, struct shim_comm *c, const void *call_site)
{
    shim_workload_call(call_site);
    ring_board_sleepers(c);
    int result = shim_wait_request(request, MPI_STATUS_IGNORE, c, false, call_site);
    ring_board_sleepers(c);
    return result;
}
