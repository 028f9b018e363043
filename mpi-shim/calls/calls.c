/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * calls.c - wrappers that are written by hand: MPI_Sendrecv_replace, starts, probes,
 * completion calls and tests.
 *
 * All follow one pattern.  The arguments of the non-blocking form are in a struct args.  A check_*
 * function calls that form once for the wait engine.  The ranks that may wait for this one are
 * rung.  If the library calls the shim while it polls, its blocking function is called instead.
 * Arguments that MPI will refuse go to the blocking function, which reports the error.
 */
#include "mpi-shim/calls/calls.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/calls/arguments.h"
#include "mpi-shim/calls/errhandler.h"
#include "mpi-shim/calls/partitioned.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/watch.h"

#include <limits.h>
#include <stdlib.h>

/* The arguments of all checks; each check uses some. */
struct args {
    int count;
    MPI_Request *requests;
    const MPI_Request *asked; /* those that stay as they are */
    int *number, *indices; /* Testany's index; Testsome's outcount */
    MPI_Status *status;
    int source, tag;
    MPI_Comm comm;
    MPI_Message *message;
    int flag;
};

/* `flag` is a pointer, since the call that returns `result` also writes the flag. */
static bool set_result(struct shim_wait *w, int result, const int *flag)
{
    w->result = result;
    return *flag || result != MPI_SUCCESS;
}

/* --- point to point */

/* The send has failed, so the blocking function would not have begun a receive: the receive must
 * not take a later message. */
static int cancel_exchange(struct shim_exchange *e)
{
    if (e->receive != MPI_REQUEST_NULL) {
        shim_pmpi.Cancel(&e->receive);
        shim_pmpi.Request_free(&e->receive);
    }
    return e->result;
}

int shim_exchange_wait(struct shim_exchange *e, struct shim_comm *c, MPI_Status *status)
{
    if (!shim_begun(e->send, e->result, e->dest))
        return cancel_exchange(e);
    shim_ring_rank(c, e->dest);
    if (e->source != e->dest)
        shim_ring_rank(c, e->source);
    bool suspended = shim_errhandler_suspend(c);
    int received = shim_wait_one(&e->receive, status, shim_domain_rank(c, e->source), e->call_site);
    int sent =
        shim_wait_one(&e->send, MPI_STATUS_IGNORE, shim_domain_rank(c, e->dest), e->call_site);
    inv_assert(received != MPI_SUCCESS || e->receive == MPI_REQUEST_NULL); /* it has been completed */
    inv_assert(sent != MPI_SUCCESS || e->send == MPI_REQUEST_NULL);
    return shim_errhandler_resume(suspended, c->handle, received != MPI_SUCCESS ? received : sent);
}

/* A copy of the data to send, since the receive will overwrite it.  The caller frees it.  NULL when
 * there is no memory or MPI refuses to pack. */
static void *pack_copy(const void *buf, int count, MPI_Datatype datatype, MPI_Comm comm, int *size)
{
    int room = 0;
    *size = 0;
    if (shim_pmpi.Pack_size(count, datatype, comm, &room) != MPI_SUCCESS)
        return NULL;
    void *copy = malloc((size_t)room + 1);
    if (copy && shim_pmpi.Pack(buf, count, datatype, copy, room, size, comm) != MPI_SUCCESS) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

/* MPI_Isendrecv_replace would be shorter, but MPICH's gives no status of the receive. */
int shim_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                          int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    struct shim_comm *c = shim_comm(comm);
    if (shim_watches())
        return SHIM_WATCH(NULL, shim_domain_rank(c, dest), shim_domain_rank(c, source),
                          shim_pmpi.Sendrecv_replace(buf, count, datatype, dest, sendtag, source,
                                                     recvtag, comm, status));
    int size;
    void *copy = shim_send_valid(c, buf, count, datatype, dest, sendtag) &&
                         shim_recv_valid(c, buf, count, datatype, source, recvtag)
                     ? pack_copy(buf, count, datatype, comm, &size)
                     : NULL;
    if (!copy)
        return shim_pmpi.Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag,
                                          comm, status);
    struct shim_exchange e = {.receive = MPI_REQUEST_NULL,
                              .send = MPI_REQUEST_NULL,
                              .source = source,
                              .dest = dest,
                              .call_site = SHIM_SITE};
    e.result = shim_pmpi.Irecv(buf, count, datatype, source, recvtag, comm, &e.receive);
    if (shim_begun(e.receive, e.result, source))
        e.result = shim_pmpi.Isend(copy, size, MPI_PACKED, dest, sendtag, comm, &e.send);
    int result = shim_exchange_wait(&e, c, status);
    free(copy);
    return result;
}

int shim_Sendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest,
                            int sendtag, int source, int recvtag, MPI_Comm comm,
                            MPI_Status *status)
{
    if (count >= 0 && count <= INT_MAX)
        return shim_Sendrecv_replace(buf, (int)count, datatype, dest, sendtag, source, recvtag,
                                     comm, status);
    return shim_pmpi.Sendrecv_replace_c(buf, count, datatype, dest, sendtag, source, recvtag, comm,
                                        status);
}

/* Waits for the receivers of buffered messages: any rank. */
int shim_Buffer_detach(void *buffer, int *size)
{
    return SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_ALL, shim_pmpi.Buffer_detach(buffer, size));
}

int shim_Buffer_detach_c(void *buffer, MPI_Count *size)
{
    return SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_ALL, shim_pmpi.Buffer_detach_c(buffer, size));
}

/* --- persistent requests */

int shim_Start(MPI_Request *request)
{
    int result = shim_pmpi.Start(request);
    if (result == MPI_SUCCESS)
        shim_ring(shim_request_peer(*request));
    return result;
}

int shim_Startall(int count, MPI_Request *requests)
{
    int result = shim_pmpi.Startall(count, requests);
    struct shim_ring_set set;
    if (result == MPI_SUCCESS && count > 0) {
        shim_ring_set_collect(&set, count, requests);
        shim_ring_set_ring(&set);
    }
    return result;
}

/* Another thread of this process may wait for it. */
int shim_Grequest_complete(MPI_Request request)
{
    int result = shim_pmpi.Grequest_complete(request);
    shim_ring(shim_world.me);
    return result;
}

/* --- probes */

static bool check_iprobe(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Iprobe(a->source, a->tag, a->comm, &a->flag, a->status),
                      &a->flag);
}

static bool check_improbe(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(
        w, shim_pmpi.Improbe(a->source, a->tag, a->comm, &a->flag, a->message, a->status),
        &a->flag);
}

int shim_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    if (!shim_recv_valid(shim_comm(comm), NULL, 0, MPI_BYTE, source, tag))
        return shim_pmpi.Probe(source, tag, comm, status);
    if (shim_watches())
        return SHIM_WATCH(NULL, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
                          shim_pmpi.Probe(source, tag, comm, status));
    struct args a = {.source = source, .tag = tag, .comm = comm, .status = status};
    return shim_check_and_wait(check_iprobe, &a, SHIM_SITE);
}

int shim_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    if (!shim_recv_valid(shim_comm(comm), NULL, 0, MPI_BYTE, source, tag))
        return shim_pmpi.Mprobe(source, tag, comm, message, status);
    if (shim_watches())
        return SHIM_WATCH(NULL, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
                          shim_pmpi.Mprobe(source, tag, comm, message, status));
    struct args a = {
        .source = source, .tag = tag, .comm = comm, .message = message, .status = status};
    return shim_check_and_wait(check_improbe, &a, SHIM_SITE);
}

/* --- completion */

static bool check_test(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Test(a->requests, &a->flag, a->status), &a->flag);
}

static bool check_testall(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Testall(a->count, a->requests, &a->flag, a->status), &a->flag);
}

static bool check_testany(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Testany(a->count, a->requests, a->number, &a->flag, a->status),
                      &a->flag);
}

/* The number is not 0 either if there is no request to wait for: MPI_UNDEFINED. */
static bool check_testsome(struct shim_wait *w)
{
    struct args *a = w->arg;
    int result = shim_pmpi.Testsome(a->count, a->requests, a->number, a->indices, a->status);
    a->flag = *a->number;
    return set_result(w, result, &a->flag);
}

int shim_Wait(MPI_Request *request, MPI_Status *status)
{
    if (!request)
        return shim_pmpi.Wait(request, status);
    int domain_rank = shim_request_peer(*request);
    if (shim_watches())
        return SHIM_WATCH(NULL, domain_rank, SHIM_DOMAIN_RANK_NONE,
                          shim_pmpi.Wait(request, status));
    return shim_wait_one(request, status, domain_rank, SHIM_SITE);
}

/* The library's blocking function for the non-blocking one that `check` calls. */
static int watch_many(shim_check *check, struct args *a)
{
    int result;
    shim_watch_begin(NULL, false, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE);
    if (check == check_testall)
        result = shim_pmpi.Waitall(a->count, a->requests, a->status);
    else if (check == check_testany)
        result = shim_pmpi.Waitany(a->count, a->requests, a->number, a->status);
    else
        result = shim_pmpi.Waitsome(a->count, a->requests, a->number, a->indices, a->status);
    shim_watch_end();
    return result;
}

/* Completion call for many requests.  Their peers are rung, since they may wait for what
 * completed. */
static int wait_many(shim_check *check, struct args *a, const void *call_site)
{
    struct shim_ring_set set;
    shim_ring_set_collect(&set, a->count, a->requests);
    int result = shim_watches() ? watch_many(check, a) : shim_check_and_wait(check, a, call_site);
    shim_ring_set_ring(&set);
    return result;
}

int shim_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    if (count <= 0 || !requests)
        return shim_pmpi.Waitall(count, requests, statuses);
    if (!shim_watches() && shim_any_partitioned(count, requests)) {
        shim_await_partitioned(count, requests, SHIM_SITE);
        return shim_pmpi.Waitall(count, requests, statuses);
    }
    struct args a = {.count = count, .requests = requests, .status = statuses};
    return wait_many(check_testall, &a, SHIM_SITE);
}

int shim_Waitany(int count, MPI_Request *requests, int *which, MPI_Status *status)
{
    if (count <= 0 || !requests)
        return shim_pmpi.Waitany(count, requests, which, status);
    struct args a = {.count = count, .requests = requests, .number = which, .status = status};
    return wait_many(check_testany, &a, SHIM_SITE);
}

int shim_Waitsome(int incount, MPI_Request *requests, int *outcount, int *indices,
                  MPI_Status *statuses)
{
    if (incount <= 0 || !requests || !outcount)
        return shim_pmpi.Waitsome(incount, requests, outcount, indices, statuses);
    struct args a = {.count = incount,
                     .requests = requests,
                     .number = outcount,
                     .indices = indices,
                     .status = statuses};
    return wait_many(check_testsome, &a, SHIM_SITE);
}

/* --- tests */

/* shim_check_once for a test that sets a flag. */
static int check_for_flag(shim_check *check, struct args *a, int *flag, const void *call_site)
{
    int result = shim_check_once(check, a, call_site);
    *flag = a->flag;
    return result;
}

/* Is at least one of the requests not MPI_REQUEST_NULL? */
static bool any_active(int count, const MPI_Request *requests)
{
    for (int i = 0; requests && i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            return true;
    return false;
}

static int test_many(shim_check *check, struct args *a, const void *call_site)
{
    struct shim_ring_set set;
    shim_ring_set_collect(&set, a->count, a->requests);
    int result = shim_check_once(check, a, call_site);
    if (a->flag)
        shim_ring_set_ring(&set);
    return result;
}

int shim_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!request || !flag || *request == MPI_REQUEST_NULL)
        return shim_pmpi.Test(request, flag, status);
    int domain_rank = shim_request_peer(*request);
    struct args a = {.requests = request, .status = status};
    int result = shim_check_once(check_test, &a, SHIM_SITE);
    *flag = a.flag;
    if (a.flag)
        shim_ring(domain_rank);
    return result;
}

int shim_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    if (!flag || !any_active(count, requests))
        return shim_pmpi.Testall(count, requests, flag, statuses);
    struct args a = {.count = count, .requests = requests, .status = statuses};
    int result = test_many(check_testall, &a, SHIM_SITE);
    *flag = a.flag;
    return result;
}

int shim_Testany(int count, MPI_Request *requests, int *which, int *flag, MPI_Status *status)
{
    if (!flag || !any_active(count, requests))
        return shim_pmpi.Testany(count, requests, which, flag, status);
    struct args a = {.count = count, .requests = requests, .number = which, .status = status};
    int result = test_many(check_testany, &a, SHIM_SITE);
    *flag = a.flag;
    return result;
}

int shim_Testsome(int incount, MPI_Request *requests, int *outcount, int *indices,
                  MPI_Status *statuses)
{
    if (!outcount || !any_active(incount, requests))
        return shim_pmpi.Testsome(incount, requests, outcount, indices, statuses);
    struct args a = {.count = incount,
                     .requests = requests,
                     .number = outcount,
                     .indices = indices,
                     .status = statuses};
    return test_many(check_testsome, &a, SHIM_SITE);
}

static bool check_get_status(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Request_get_status(*a->requests, &a->flag, a->status), &a->flag);
}

int shim_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!flag || request == MPI_REQUEST_NULL)
        return shim_pmpi.Request_get_status(request, flag, status);
    struct args a = {.requests = &request, .status = status};
    return check_for_flag(check_get_status, &a, flag, SHIM_SITE);
}

static bool check_get_status_all(struct shim_wait *w)
{
    struct args *a = w->arg;
    return set_result(w, shim_pmpi.Request_get_status_all(a->count, a->asked, &a->flag, a->status),
                      &a->flag);
}

int shim_Request_get_status_all(int count, const MPI_Request *requests, int *flag,
                                MPI_Status *statuses)
{
    if (!flag || !any_active(count, requests))
        return shim_pmpi.Request_get_status_all(count, requests, flag, statuses);
    struct args a = {.count = count, .asked = requests, .status = statuses};
    return check_for_flag(check_get_status_all, &a, flag, SHIM_SITE);
}

static bool check_get_status_any(struct shim_wait *w)
{
    struct args *a = w->arg;
    int result =
        shim_pmpi.Request_get_status_any(a->count, a->asked, a->number, &a->flag, a->status);
    return set_result(w, result, &a->flag);
}

int shim_Request_get_status_any(int count, const MPI_Request *requests, int *which, int *flag,
                                MPI_Status *status)
{
    if (!flag || !any_active(count, requests))
        return shim_pmpi.Request_get_status_any(count, requests, which, flag, status);
    struct args a = {.count = count, .asked = requests, .number = which, .status = status};
    return check_for_flag(check_get_status_any, &a, flag, SHIM_SITE);
}

static bool check_get_status_some(struct shim_wait *w)
{
    struct args *a = w->arg;
    int result = shim_pmpi.Request_get_status_some(a->count, a->asked, a->number, a->indices,
                                                   a->status);
    a->flag = *a->number;
    return set_result(w, result, &a->flag);
}

int shim_Request_get_status_some(int incount, const MPI_Request *requests, int *outcount,
                                 int *indices, MPI_Status *statuses)
{
    if (!outcount || !any_active(incount, requests))
        return shim_pmpi.Request_get_status_some(incount, requests, outcount, indices, statuses);
    struct args a = {.count = incount,
                     .asked = requests,
                     .number = outcount,
                     .indices = indices,
                     .status = statuses};
    return shim_check_once(check_get_status_some, &a, SHIM_SITE);
}

int shim_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    if (!flag)
        return shim_pmpi.Iprobe(source, tag, comm, flag, status);
    struct args a = {.source = source, .tag = tag, .comm = comm, .status = status};
    return check_for_flag(check_iprobe, &a, flag, SHIM_SITE);
}

int shim_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                 MPI_Status *status)
{
    if (!flag)
        return shim_pmpi.Improbe(source, tag, comm, flag, message, status);
    struct args a = {
        .source = source, .tag = tag, .comm = comm, .message = message, .status = status};
    return check_for_flag(check_improbe, &a, flag, SHIM_SITE);
}
