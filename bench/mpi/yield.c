/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * yield.c - the best that a waiting rank can do without sleeping, for an MPI library that has no
 * such mode of its own: every blocking call that bench/mpi/calls.c makes becomes its non-blocking
 * form, tested until it is complete, and sched_yield after each test; MPI_Waitall, too.  Preloaded by
 * bench/mpi/waits.py and bench/run swe; the reference beside stock, nothing of the project's own.
 */
#include <mpi.h>
#include <sched.h>

static int finish(int result, MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Test(request, &flag, status);
        if (!flag)
            sched_yield();
    }
    return result;
}

int MPI_Barrier(MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Ibarrier(comm, &r), &r, MPI_STATUS_IGNORE);
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Ibcast(buf, count, type, root, comm, &r), &r, MPI_STATUS_IGNORE);
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Ireduce(in, out, count, type, op, root, comm, &r), &r, MPI_STATUS_IGNORE);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Iallreduce(in, out, count, type, op, comm, &r), &r, MPI_STATUS_IGNORE);
}

int MPI_Alltoall(const void *in, int incount, MPI_Datatype intype, void *out, int outcount,
                 MPI_Datatype outtype, MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Ialltoall(in, incount, intype, out, outcount, outtype, comm, &r), &r,
                  MPI_STATUS_IGNORE);
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    MPI_Request r;
    return finish(PMPI_Isend(buf, count, type, dest, tag, comm, &r), &r, MPI_STATUS_IGNORE);
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    MPI_Request r;
    return finish(PMPI_Irecv(buf, count, type, source, tag, comm, &r), &r, status);
}

int MPI_Sendrecv(const void *out, int outcount, MPI_Datatype outtype, int dest, int outtag,
                 void *in, int incount, MPI_Datatype intype, int source, int intag, MPI_Comm comm,
                 MPI_Status *status)
{
    MPI_Request r[2];
    int result = PMPI_Irecv(in, incount, intype, source, intag, comm, &r[0]);
    if (result == MPI_SUCCESS)
        result = PMPI_Isend(out, outcount, outtype, dest, outtag, comm, &r[1]);
    result = finish(result, &r[0], status);
    return finish(result, &r[1], MPI_STATUS_IGNORE);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int flag = 0, result = MPI_SUCCESS;
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Testall(count, requests, &flag, statuses);
        if (!flag)
            sched_yield();
    }
    return result;
}
