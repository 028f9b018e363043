/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * partitioned.c - partitioned communication, and a list of partitioned requests.  MPI_Testall of
 * MPICH 4.0 takes them for failed ones, so MPI_Waitall with such requests does not become
 * MPI_Testall.
 */
#include "mpi-shim/calls/partitioned.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"

#include <pthread.h>
#include <stdlib.h>

struct live {
    MPI_Request request;
    struct live *next;
};
/* Written by add_live and shim_Request_free, under the lock. */
static struct {
    pthread_mutex_t lock;
    struct live *first;
    _Atomic int count; /* read without the lock */
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_live(MPI_Request request, int domain_rank)
{
    struct live *l = malloc(sizeof *l);
    shim_request_set_peer(request, domain_rank);
    if (!l)
        return;
    pthread_mutex_lock(&live.lock);
    *l = (struct live){request, live.first};
    live.first = l;
    /* relaxed: a thread that has the request got it after this store */
    atomic_fetch_add_explicit(&live.count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&live.lock);
}

static bool is_live(MPI_Request request)
{
    pthread_mutex_lock(&live.lock);
    const struct live *l = live.first;
    while (l && l->request != request)
        l = l->next;
    pthread_mutex_unlock(&live.lock);
    return l != NULL;
}

int shim_Request_free(MPI_Request *request)
{
    MPI_Request gone = request ? *request : MPI_REQUEST_NULL;
    if (atomic_load_explicit(&live.count, memory_order_relaxed)) {
        pthread_mutex_lock(&live.lock);
        for (struct live **link = &live.first; *link; link = &(*link)->next)
            if ((*link)->request == gone) {
                struct live *l = *link;
                *link = l->next;
                free(l);
                atomic_fetch_sub_explicit(&live.count, 1, memory_order_relaxed);
                break;
            }
        pthread_mutex_unlock(&live.lock);
    }
    return shim_pmpi.Request_free(request);
}

bool shim_any_partitioned(int count, const MPI_Request *requests)
{
    if (!atomic_load_explicit(&live.count, memory_order_relaxed))
        return false;
    for (int i = 0; i < count; i++)
        if (is_live(requests[i]))
            return true;
    return false;
}

static bool check_get_status(struct shim_wait *w)
{
    int flag = 0;
    w->result =
        shim_pmpi.Request_get_status(*(const MPI_Request *)w->arg, &flag, MPI_STATUS_IGNORE);
    return flag || w->result != MPI_SUCCESS;
}

void shim_await_partitioned(int count, MPI_Request *requests, const void *call_site)
{
    for (int i = 0; i < count; i++)
        if (is_live(requests[i]))
            shim_check_and_wait(check_get_status, &requests[i], call_site);
}

int shim_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype,
                    int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    int result =
        shim_pmpi.Psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
    if (result == MPI_SUCCESS)
        add_live(*request, shim_domain_rank(shim_comm(comm), dest));
    return result;
}

int shim_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source,
                    int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    int result =
        shim_pmpi.Precv_init(buf, partitions, count, datatype, source, tag, comm, info, request);
    if (result == MPI_SUCCESS)
        add_live(*request, shim_domain_rank(shim_comm(comm), source));
    return result;
}

int shim_Pready(int partition, MPI_Request request)
{
    int result = shim_pmpi.Pready(partition, request);
    if (result == MPI_SUCCESS)
        shim_ring(shim_request_peer(request));
    return result;
}

int shim_Pready_range(int low, int high, MPI_Request request)
{
    int result = shim_pmpi.Pready_range(low, high, request);
    if (result == MPI_SUCCESS)
        shim_ring(shim_request_peer(request));
    return result;
}

int shim_Pready_list(int length, const int *partitions, MPI_Request request)
{
    int result = shim_pmpi.Pready_list(length, partitions, request);
    if (result == MPI_SUCCESS)
        shim_ring(shim_request_peer(request));
    return result;
}

struct partition {
    MPI_Request request;
    int number, flag;
};

static bool check_parrived(struct shim_wait *w)
{
    struct partition *p = w->arg;
    w->result = shim_pmpi.Parrived(p->request, p->number, &p->flag);
    return p->flag || w->result != MPI_SUCCESS;
}

int shim_Parrived(MPI_Request request, int partition, int *flag)
{
    if (!flag || request == MPI_REQUEST_NULL)
        return shim_pmpi.Parrived(request, partition, flag);
    struct partition p = {.request = request, .number = partition};
    int result = shim_check_once(check_parrived, &p, SHIM_SITE);
    *flag = p.flag;
    return result;
}
