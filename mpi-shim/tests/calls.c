/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calls.c - every MPI call that the shim wraps, and what a program can see of it: data,
 * statuses, counts, errors.  Prints all that in rank order; the test compares a managed
 * run's text with an unmanaged one's.
 */
#include "log.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 300000, MOST_RANKS = 64 };

static void note_ints(const char *what, const int *values, int count)
{
    unsigned hash = 5381;
    for (int i = 0; i < count; i++)
        hash = hash * 33 + (unsigned)values[i];
    note("%s: n=%d first=%d last=%d hash=%u\n", what, count, count ? values[0] : 0,
         count ? values[count - 1] : 0, hash);
}

static void note_status(const char *what, const MPI_Status *s)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(s, MPI_INT, &count);
    MPI_Test_cancelled(s, &cancelled);
    note("%s: source=%d tag=%d count=%d cancelled=%d\n", what, s->MPI_SOURCE, s->MPI_TAG, count,
         cancelled);
}

static void note_error(const char *what, int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    note("%s: error class %d\n", what, class);
}

/* --- collectives */

/* Matrix-like and not commutative: (a, b) o (c, d) = (a * c, a * d + b), modulo a prime. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    long *a = in, *b = inout;
    for (int i = 0; i < *count; i++, a += 2, b += 2) {
        long first = a[0] * b[0] % 10007, second = (a[0] * b[1] + a[1]) % 10007;
        b[0] = first;
        b[1] = second;
    }
}

/* To each root, with and without its part in place. */
static void reductions_to_roots(MPI_Comm comm, int rank, int size)
{
    enum { N = 9 };
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    int mine[N], all[N];
    double real[N], sum[N];
    for (int i = 0; i < N; i++)
        real[i] = mine[i] = (rank + i) % 4 + 1;
    for (int root = 0; root < size; root++)
        for (int o = 0; o < 4; o++) {
            memcpy(all, mine, sizeof all);
            MPI_Reduce(rank == root ? MPI_IN_PLACE : all, all, N, MPI_INT, ops[o], root, comm);
            note_ints("reduce in place", all, rank == root ? N : 0);
            MPI_Reduce(mine, all, N - o, MPI_INT, ops[o], root, comm);
            note_ints("reduce", all, rank == root ? N - o : 0);
            MPI_Reduce(real, sum, N, MPI_DOUBLE, ops[o], root, comm);
            for (int i = 0; rank == root && i < N; i++)
                note("%g ", sum[i]);
        }
}

static void reductions(MPI_Comm comm, int rank, int size)
{
    int mine[7], all[7], part[7 * MOST_RANKS] = {0};
    for (int i = 0; i < 7; i++)
        mine[i] = rank * 10 + i;
    MPI_Allreduce(mine, all, 7, MPI_INT, MPI_SUM, comm);
    note_ints("allreduce", all, 7);
    memcpy(all, mine, sizeof all);
    MPI_Allreduce(MPI_IN_PLACE, all, 7, MPI_INT, MPI_MAX, comm);
    note_ints("allreduce in place", all, 7);
    MPI_Allreduce(mine, all, 0, MPI_INT, MPI_SUM, comm);
    for (int root = 0; root < size; root++) {
        memcpy(all, mine, sizeof all);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : all, all, 7, MPI_INT, MPI_BXOR, root, comm);
        note_ints("reduce", all, rank == root ? 7 : 0);
    }
    memset(all, 0, sizeof all);
    MPI_Scan(mine, all, 7, MPI_INT, MPI_SUM, comm);
    note_ints("scan", all, 7);
    memset(all, 0, sizeof all);
    MPI_Exscan(mine, all, 7, MPI_INT, MPI_SUM, comm);
    note_ints("exscan", all, rank ? 7 : 0);
    int counts[MOST_RANKS];
    for (int r = 0; r < size; r++)
        counts[r] = r % 3; /* zero among them */
    for (int i = 0; i < 7 * size; i++)
        part[i] = i * (rank + 1);
    MPI_Reduce_scatter(part, all, counts, MPI_INT, MPI_SUM, comm);
    note_ints("reduce_scatter", all, counts[rank]);
    MPI_Reduce_scatter_block(part, all, 3, MPI_INT, MPI_SUM, comm);
    note_ints("reduce_scatter_block", all, 3);
}

static void user_operation(MPI_Comm comm, int rank)
{
    long mine[2] = {rank + 2, rank * 3 + 1}, out[2] = {0, 0};
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    MPI_Allreduce(mine, out, 1, pair, op, comm);
    note("composed %ld %ld\n", out[0], out[1]);
    MPI_Scan(mine, out, 1, pair, op, comm);
    note("composed so far %ld %ld\n", out[0], out[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void gathers(MPI_Comm comm, int rank, int size)
{
    int mine[3] = {rank, rank * rank, -rank}, all[3 * MOST_RANKS];
    int counts[MOST_RANKS], displs[MOST_RANKS], total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r % 4 < 3 ? r % 4 : 0;
        displs[r] = total;
        total += counts[r];
    }
    memset(all, 0, sizeof all);
    MPI_Allgather(mine, 3, MPI_INT, all, 3, MPI_INT, comm);
    note_ints("allgather", all, 3 * size);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 3, MPI_INT, comm);
    note_ints("allgather in place", all, 3 * size);
    MPI_Allgatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, comm);
    note_ints("allgatherv", all, total);
    int root = size - 1;
    memset(all, 0, sizeof all);
    MPI_Gather(mine, 3, MPI_INT, rank == root ? all : NULL, 3, MPI_INT, root, comm);
    note_ints("gather", all, 3 * size);
    MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, root, comm);
    note_ints("gatherv", all, 3 * size);
    int got[3] = {0};
    MPI_Scatter(all, 3, MPI_INT, got, 3, MPI_INT, root, comm);
    note_ints("scatter", got, 3);
    MPI_Scatterv(all, counts, displs, MPI_INT, got, counts[rank], MPI_INT, root, comm);
    note_ints("scatterv", got, 3);
}

static void all_to_all(MPI_Comm comm, int rank, int size)
{
    int out[128], in[128], counts[MOST_RANKS], displs[MOST_RANKS], bytes[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    for (int r = 0; r < size; r++) {
        out[2 * r] = rank * 100 + r;
        out[2 * r + 1] = -out[2 * r];
        counts[r] = (r + rank) % 2 + 1; /* symmetric */
        displs[r] = 2 * r;
        bytes[r] = 2 * r * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    memset(in, 0, sizeof in);
    MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, comm);
    note_ints("alltoall", in, 2 * size);
    MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm);
    note_ints("alltoallv", in, 2 * size);
    MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, comm);
    note_ints("alltoallw", in, 2 * size);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_INT, comm);
    note_ints("alltoall in place", in, 2 * size);
}

static void collectives(MPI_Comm comm)
{
    int rank, size, value[4];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    note("--- collectives, rank %d of %d\n", rank, size);
    MPI_Barrier(comm);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < 4; i++)
            value[i] = rank == root ? root * 7 + i : -1;
        MPI_Bcast(value, 4, MPI_INT, root, comm);
        note_ints("bcast", value, 4);
    }
    int *big = malloc(BIG * sizeof *big);
    for (int i = 0; i < BIG; i++)
        big[i] = rank == 0 ? i : 0;
    MPI_Bcast(big, BIG, MPI_INT, 0, comm);
    note_ints("big bcast", big, BIG);
    free(big);
    reductions(comm, rank, size);
    reductions_to_roots(comm, rank, size);
    user_operation(comm, rank);
    gathers(comm, rank, size);
    all_to_all(comm, rank, size);
    MPI_Request request[2];
    int sum = 0;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request[0]);
    MPI_Ibarrier(comm, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    note("iallreduce %d\n", sum);
}

/* Skewed arrivals in an order that changes, more calls than a quick streak needs. */
static void many_barriers(MPI_Comm comm)
{
    int rank, size, sum, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 300; i++) {
        volatile int work = i % 50 == 49 && i / 50 % size == rank ? 2000000 : 0;
        while (work > 0)
            work = work - 1;
        int mine = rank + i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        wrong += sum != size * (size - 1) / 2 + i * size;
        if (i % 10 == 0)
            MPI_Barrier(comm);
    }
    note("barriers: %d wrong\n", wrong);
}

/* --- point to point: each rank sends to the next one and receives from the one before */

static void blocking_ring(MPI_Comm comm, int next, int previous, int rank)
{
    int out[5], in[5] = {0};
    MPI_Status s;
    MPI_Request request;
    for (int i = 0; i < 5; i++)
        out[i] = rank * 5 + i;
    char buffer[1000 + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(out, 5, MPI_INT, next, 1, comm);
    MPI_Recv(in, 5, MPI_INT, previous, 1, comm, &s);
    note_ints("bsend", in, 5);
    note_status("recv", &s);
    void *detached;
    int detached_size;
    MPI_Buffer_detach(&detached, &detached_size);
    MPI_Irecv(in, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    MPI_Barrier(comm);
    MPI_Rsend(out, 3, MPI_INT, next, 2, comm);
    MPI_Wait(&request, &s);
    note_status("rsend, any source", &s);
    note("request null: %d\n", request == MPI_REQUEST_NULL);
    if (rank % 2 == 0 && next != rank)
        MPI_Ssend(out, 5, MPI_INT, next, 3, comm);
    if (previous % 2 == 0 && next != rank)
        MPI_Recv(in, 5, MPI_INT, MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE);
    note_ints("ssend", in, 5);
    MPI_Sendrecv(out, 2, MPI_INT, next, 4, in, 5, MPI_INT, previous, 4, comm, &s);
    note_status("sendrecv", &s);
    MPI_Sendrecv_replace(out, 5, MPI_INT, next, 5, previous, 5, comm, &s);
    note_ints("sendrecv_replace", out, 5);
    note_status("sendrecv_replace", &s);
    MPI_Sendrecv(out, 2, MPI_INT, MPI_PROC_NULL, 4, in, 5, MPI_INT, MPI_PROC_NULL, 4, comm, &s);
    note_status("sendrecv null", &s);
    MPI_Send(out, 2, MPI_INT, MPI_PROC_NULL, 4, comm);
    MPI_Recv(out, 2, MPI_INT, MPI_PROC_NULL, 4, comm, &s);
    note_status("recv null", &s);
    MPI_Probe(MPI_PROC_NULL, 4, comm, &s);
    note_status("probe null", &s);
}

static void probes(MPI_Comm comm, int next, int previous, int rank)
{
    int value = rank, got = -1, flag = 0;
    MPI_Status s;
    MPI_Request request;
    MPI_Message message;
    MPI_Isend(&value, 1, MPI_INT, next, 6, comm, &request);
    MPI_Probe(previous, 6, comm, &s);
    note_status("probe", &s);
    MPI_Recv(&got, 1, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(&value, 1, MPI_INT, next, 7, comm, &request);
    MPI_Mprobe(MPI_ANY_SOURCE, 7, comm, &message, &s);
    MPI_Mrecv(&got, 1, MPI_INT, &message, &s);
    note_status("mrecv", &s);
    note("got %d, message null: %d\n", got, message == MPI_MESSAGE_NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(&value, 1, MPI_INT, next, 8, comm, &request);
    while (!flag)
        MPI_Iprobe(previous, 8, comm, &flag, &s);
    note_status("iprobe", &s);
    for (flag = 0; !flag;)
        MPI_Improbe(previous, 8, comm, &flag, &message, &s);
    MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note("got %d\n", got);
}

/* Both directions at once, each message of a size that needs the other side's help. */
static void exchange(MPI_Comm comm, int next, int previous, int rank, int count)
{
    int *out = malloc((size_t)count * sizeof *out), *in = malloc((size_t)count * sizeof *in);
    MPI_Request requests[4];
    MPI_Status statuses[4];
    for (int i = 0; i < count; i++)
        out[i] = rank + i;
    MPI_Irecv(in, count / 2, MPI_INT, previous, 9, comm, &requests[0]);
    MPI_Irecv(in + count / 2, count - count / 2, MPI_INT, previous, 10, comm, &requests[1]);
    MPI_Isend(out, count / 2, MPI_INT, next, 9, comm, &requests[2]);
    MPI_Issend(out + count / 2, count - count / 2, MPI_INT, next, 10, comm, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    note_ints("exchange", in, count);
    note_status("exchange 0", &statuses[0]);
    note_status("exchange 1", &statuses[1]);
    free(out);
    free(in);
}

static void start_three(MPI_Comm comm, int next, int previous, int *out, int *in, MPI_Request *r)
{
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, previous, 20 + i, comm, &r[i]);
    for (int i = 0; i < 3; i++)
        MPI_Isend(&out[i], 1, MPI_INT, next, 20 + i, comm, &r[3 + i]);
}

static void completions(MPI_Comm comm, int next, int previous, int rank)
{
    int out[3] = {rank, rank + 1, rank + 2}, in[3], indices[6], count, which, flag, done = 0;
    MPI_Request r[6];
    start_three(comm, next, previous, out, in, r);
    for (int i = 0; i < 6; i++, done |= 1 << which)
        MPI_Waitany(6, r, &which, MPI_STATUS_IGNORE);
    MPI_Waitany(6, r, &which, MPI_STATUS_IGNORE);
    note("waitany %x, then undefined: %d\n", done, which == MPI_UNDEFINED);
    start_three(comm, next, previous, out, in, r);
    for (done = 0; MPI_Waitsome(6, r, &count, indices, MPI_STATUSES_IGNORE), count > 0;)
        for (int i = 0; i < count; i++)
            done |= 1 << indices[i];
    note("waitsome %x, then undefined: %d\n", done, count == MPI_UNDEFINED);
    start_three(comm, next, previous, out, in, r);
    for (flag = 0; !flag;)
        MPI_Testall(6, r, &flag, MPI_STATUSES_IGNORE);
    note_ints("testall", in, 3);
    start_three(comm, next, previous, out, in, r);
    for (done = 0, which = 0; which != MPI_UNDEFINED;) {
        MPI_Testany(6, r, &which, &flag, MPI_STATUS_IGNORE);
        if (flag && which != MPI_UNDEFINED)
            done |= 1 << which;
        else if (!flag)
            which = 0;
    }
    note("testany %x\n", done);
    start_three(comm, next, previous, out, in, r);
    for (done = 0; MPI_Testsome(6, r, &count, indices, MPI_STATUSES_IGNORE), count >= 0;)
        for (int i = 0; i < count; i++)
            done |= 1 << indices[i];
    note("testsome %x\n", done);
    MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    note("test of null: %d\n", flag);
    MPI_Waitall(6, r, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
}

/* Looks that leave the requests as they are, of MPI 4.1. */
static void looks(MPI_Comm comm, int next, int previous, int rank)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    int out[3] = {rank, rank + 1, rank + 2}, in[3], indices[6], count, which, flag = 0;
    MPI_Request r[6];
    start_three(comm, next, previous, out, in, r);
    while (!flag)
        MPI_Request_get_status_any(6, r, &which, &flag, MPI_STATUS_IGNORE);
    note("status of any: %d\n", which >= 0 && which < 6);
    for (count = 0; count == 0;)
        MPI_Request_get_status_some(6, r, &count, indices, MPI_STATUSES_IGNORE);
    note("status of some: %d\n", count > 0 && indices[0] < 6);
    for (flag = 0; !flag;)
        MPI_Request_get_status_all(6, r, &flag, MPI_STATUSES_IGNORE);
    MPI_Waitall(6, r, MPI_STATUSES_IGNORE);
    note_ints("status of all", in, 3);
    MPI_Request_get_status_all(6, r, &flag, MPI_STATUSES_IGNORE);
    note("of nulls: %d\n", flag);
#else
    (void)comm;
    (void)next;
    (void)previous;
    (void)rank;
#endif
}

static void persistent(MPI_Comm comm, int next, int previous, int rank)
{
    int out = 0, in = 0, sum = 0;
    MPI_Request r[2];
    MPI_Send_init(&out, 1, MPI_INT, next, 30, comm, &r[0]);
    MPI_Recv_init(&in, 1, MPI_INT, previous, 30, comm, &r[1]);
    for (int i = 0; i < 20; i++) {
        out = rank * i;
        if (i % 2) {
            MPI_Startall(2, r);
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        } else {
            MPI_Start(&r[0]);
            MPI_Start(&r[1]);
            MPI_Wait(&r[1], MPI_STATUS_IGNORE);
            MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        }
        sum += in;
    }
    MPI_Wait(&r[0], MPI_STATUS_IGNORE); /* inactive */
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    note("persistent %d\n", sum);
}

static void point_to_point(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    note("--- point to point, rank %d of %d\n", rank, size);
    blocking_ring(comm, next, previous, rank);
    probes(comm, next, previous, rank);
    exchange(comm, next, previous, rank, 100);
    exchange(comm, next, previous, rank, BIG);
    completions(comm, next, previous, rank);
    looks(comm, next, previous, rank);
    persistent(comm, next, previous, rank);
    MPI_Request cancelled;
    MPI_Status s;
    int value;
    MPI_Irecv(&value, 1, MPI_INT, previous, 99, comm, &cancelled);
    MPI_Cancel(&cancelled);
    MPI_Wait(&cancelled, &s);
    int flag;
    MPI_Test_cancelled(&s, &flag);
    note("cancelled: %d\n", flag);
}

/* --- errors */

static int handler_calls;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handler_calls++;
}

static void argument_errors(MPI_Comm comm)
{
    int value = 0, size;
    MPI_Comm_size(comm, &size);
    note_error("send to a rank too high", MPI_Send(&value, 1, MPI_INT, size, 1, comm));
    note_error("send of -1", MPI_Send(&value, -1, MPI_INT, 0, 1, comm));
    note_error("send with tag -5", MPI_Send(&value, 1, MPI_INT, 0, -5, comm));
    note_error("send of no type", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 1, comm));
    note_error("recv from -9", MPI_Recv(&value, 1, MPI_INT, -9, 1, comm, MPI_STATUS_IGNORE));
    note_error("bcast from a rank too high", MPI_Bcast(&value, 1, MPI_INT, size, comm));
    note_error("bcast of -1", MPI_Bcast(&value, -1, MPI_INT, 0, comm));
    note_error("allreduce without operation",
               MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_OP_NULL, comm));
    note_error("barrier on nothing", MPI_Barrier(MPI_COMM_NULL));
    note_error("send on nothing", MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
}

static void truncation(MPI_Comm comm)
{
    int rank, out[4] = {1, 2, 3, 4}, in[4] = {0};
    MPI_Request r[2];
    MPI_Status s[2];
    MPI_Comm_rank(comm, &rank);
    MPI_Isend(out, 4, MPI_INT, rank, 40, comm, &r[0]);
    note_error("truncated recv", MPI_Recv(in, 2, MPI_INT, rank, 40, comm, &s[0]));
    note("tag %d\n", s[0].MPI_TAG);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Isend(out, 4, MPI_INT, rank, 41, comm, &r[0]);
    MPI_Irecv(in, 2, MPI_INT, rank, 41, comm, &r[1]);
    note_error("truncated waitall", MPI_Waitall(2, r, s));
    note_error("send's status", s[0].MPI_ERROR);
    note_error("receive's status", s[1].MPI_ERROR);
}

static void errors(void)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    argument_errors(comm);
    truncation(comm);
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    handler_calls = 0;
    argument_errors(comm);
    note("handler called %d times\n", handler_calls);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    note("comm null: %d\n", comm == MPI_COMM_NULL);
}

/* --- communicators */

static void between_groups(void)
{
    MPI_Comm half, inter;
    int colour = world_rank % 2, size, sum = 0, from = -1;
    if (world_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, colour, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !colour, 50, &inter);
    MPI_Comm_remote_size(inter, &size);
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Barrier(inter);
    int root = colour ? 0 : world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    from = world_rank;
    MPI_Bcast(&from, 1, MPI_INT, root, inter);
    note("other group: %d ranks, sum %d, bcast %d\n", size, sum, from);
    if (world_rank < 2) {
        MPI_Sendrecv(&world_rank, 1, MPI_INT, 0, 51, &from, 1, MPI_INT, 0, 51, inter,
                     MPI_STATUS_IGNORE);
        note("its rank 0: %d\n", from);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void many_communicators(void)
{
    MPI_Comm comm;
    int sum = 0, total = 0;
    for (int i = 0; i < 24; i++) {
        if (i % 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        else
            MPI_Comm_split(MPI_COMM_WORLD, world_rank % (i % 3 + 1), -world_rank, &comm);
        MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        total += sum * (i + 1);
        MPI_Bcast(&total, 1, MPI_INT, 0, comm);
        MPI_Comm_free(&comm);
    }
    note("many communicators: %d\n", total);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    log_begin();
    MPI_Pcontrol(1); /* a profiler's own business */
    if (world_size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm reversed, odd;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2 ? 1 : MPI_UNDEFINED, 0, &odd);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, reversed, MPI_COMM_SELF, odd};
    for (int i = 0; i < 4; i++) {
        if (comms[i] == MPI_COMM_NULL)
            continue;
        collectives(comms[i]);
        point_to_point(comms[i]);
        many_barriers(comms[i]);
    }
    errors();
    between_groups();
    many_communicators();
    log_end();
    MPI_Comm_free(&reversed);
    if (odd != MPI_COMM_NULL)
        MPI_Comm_disconnect(&odd);
    MPI_Finalize();
    return 0;
}
