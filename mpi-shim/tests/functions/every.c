/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * every.c - point to point and collectives in all their forms: blocking, non-blocking, persistent,
 * partitioned, on neighbours, with counts of type int and MPI_Count.  every.h is the body, included
 * once for each type of count.
 */
#include "expect.h"

enum { ROOM = 4 * MOST_RANKS };

static int sum_to(int n) { return n * (n - 1) / 2; }

static int sendbuf[ROOM], recvbuf[ROOM];

static void fill(int (*value)(int), int count)
{
    for (int i = 0; i < count; i++)
        sendbuf[i] = value(i);
    memset(recvbuf, -1, sizeof recvbuf);
}

static int comm_rank, comm_size;

static int by_rank(int i) { return comm_rank * 100 + i; }

#define COUNT int
#define DISP int
#define F(name) MPI_##name
#define INIT(name) MPI_##name##_init
#define BODY(name) small_##name
#include "every.h"
#undef COUNT
#undef DISP
#undef F
#undef INIT
#undef BODY

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define DISP MPI_Aint
#define F(name) MPI_##name##_c
#define INIT(name) MPI_##name##_init_c
#define BODY(name) large_##name
#define LARGE
#include "every.h"

/* Partitions that become ready in an order that changes; each arrives on its own. */
static void partitioned(MPI_Comm comm)
{
    enum { PARTS = 6, EACH = 50 };
    int out[PARTS * EACH] = {0}, in[PARTS * EACH], list[2] = {1, 4}, flag = 0;
    int next = (comm_rank + 1) % comm_size, previous = (comm_rank + comm_size - 1) % comm_size;
    MPI_Request r[2];
    MPI_Psend_init(out, PARTS, EACH, MPI_INT, next, 60, comm, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, PARTS, EACH, MPI_INT, previous, 60, comm, MPI_INFO_NULL, &r[1]);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < PARTS * EACH; i++)
            out[i] = comm_rank * 1000 + i + turn;
        memset(in, 0, sizeof in);
        MPI_Startall(2, r);
        MPI_Pready(turn == 1 ? 0 : 5, r[0]);
        MPI_Pready_range(2, 3, r[0]);
        MPI_Pready_list(2, list, r[0]);
        MPI_Pready(turn == 1 ? 5 : 0, r[0]);
        if (turn < 2)
            for (flag = 0; !flag;)
                MPI_Parrived(r[1], 3, &flag);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        int good = 1;
        for (int i = 0; i < PARTS * EACH; i++)
            good = good && in[i] == previous * 1000 + i + turn;
        expect(good, "partitioned");
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void barrier_init(MPI_Comm comm)
{
    MPI_Request r;
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r);
}

/* A persistent collective outlives its communicator's handle. */
static void on_freed_communicator(void)
{
    MPI_Comm comm;
    MPI_Request r;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce_init(&world_rank, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 3; i++, sum = 0) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        expect(sum == sum_to(world_size), "persistent allreduce on a freed communicator");
    }
    MPI_Request_free(&r);
}
#endif

/* Probes, and completion of many; then handles that are reused. */
static void completion(MPI_Comm comm)
{
    int next = (comm_rank + 1) % comm_size, previous = (comm_rank + comm_size - 1) % comm_size;
    int out[3] = {comm_rank, comm_rank + 1, comm_rank + 2}, in[3], flag, which, n, indices[6];
    MPI_Request r[6];
    MPI_Status s;
    MPI_Message message;
    for (int turn = 0; turn < 8; turn++) {
        memset(in, -1, sizeof in);
        for (int i = 0; i < 3; i++)
            MPI_Isend(&out[i], 1, MPI_INT, next, 70 + i, comm, &r[3 + i]);
        if (turn == 0) {
            MPI_Probe(previous, 70, comm, &s);
            expect(s.MPI_SOURCE == previous && s.MPI_TAG == 70, "probe");
            MPI_Mprobe(previous, MPI_ANY_TAG, comm, &message, &s);
            MPI_Mrecv(&in[s.MPI_TAG - 70], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
            for (flag = 0; !flag;)
                MPI_Iprobe(MPI_ANY_SOURCE, 71, comm, &flag, &s);
            for (flag = 0; !flag;)
                MPI_Improbe(previous, 71, comm, &flag, &message, &s);
            MPI_Imrecv(&in[1], 1, MPI_INT, &message, &r[1]);
            MPI_Recv(&in[2], 1, MPI_INT, previous, 72, comm, &s);
            r[0] = r[2] = MPI_REQUEST_NULL;
        } else
            for (int i = 0; i < 3; i++)
                MPI_Irecv(&in[i], 1, MPI_INT, previous, 70 + i, comm, &r[i]);
        int left = 6;
        if (turn == 1)
            MPI_Waitall(6, r, MPI_STATUSES_IGNORE);
        for (; turn == 2 && left; left--)
            MPI_Waitany(6, r, &which, &s);
        for (; turn == 3 && left; left -= n)
            MPI_Waitsome(6, r, &n, indices, MPI_STATUSES_IGNORE);
        for (flag = 0; turn == 4 && !flag;)
            MPI_Testall(6, r, &flag, MPI_STATUSES_IGNORE);
        for (; turn == 5 && left; left -= flag)
            MPI_Testany(6, r, &which, &flag, &s);
        for (; turn == 6 && left; left -= n)
            MPI_Testsome(6, r, &n, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 6; i++) {
            for (flag = 0; turn == 7 && !flag;)
                MPI_Request_get_status(r[i], &flag, &s);
            for (flag = 0; turn == 0 && !flag;)
                MPI_Test(&r[i], &flag, &s);
            MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        }
        expect(in[0] == previous && in[1] == previous + 1 && in[2] == previous + 2, "completion");
    }
}

static int query(void *extra, MPI_Status *s)
{
    (void)extra;
    s->MPI_SOURCE = s->MPI_TAG = MPI_UNDEFINED;
    MPI_Status_set_elements(s, MPI_INT, 3);
    MPI_Status_set_cancelled(s, 0);
    return MPI_SUCCESS;
}
static int nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}
static int never(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void generalised(void)
{
    MPI_Request r;
    MPI_Status s;
    int count;
    MPI_Grequest_start(query, nothing, never, NULL, &r);
    MPI_Grequest_complete(r);
    MPI_Wait(&r, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    expect(count == 3 && r == MPI_REQUEST_NULL, "generalised request");
}

/* Long ones, some of them empty: the same number both ways. */
static void exchange_in_place(MPI_Comm comm, int with_types)
{
    int counts[MOST_RANKS], displs[MOST_RANKS], bytes[MOST_RANKS], total = 0, good = 1;
    MPI_Datatype types[MOST_RANKS];
    for (int r = 0; r < comm_size; r++) {
        counts[r] = (r + comm_rank) % 4 * 1300 + (r * comm_rank) % 700;
        displs[r] = total;
        bytes[r] = total * (int)sizeof(int);
        types[r] = MPI_INT;
        total += counts[r];
    }
    int *data = malloc((size_t)(total + 1) * sizeof *data);
    for (int r = 0; r < comm_size; r++)
        for (int i = 0; i < counts[r]; i++)
            data[displs[r] + i] = comm_rank * 1000000 + r * 10000 + i;
    if (with_types)
        MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, data, counts, bytes, types, comm);
    else
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, data, counts, displs, MPI_INT, comm);
    for (int r = 0; r < comm_size; r++)
        for (int i = 0; i < counts[r]; i++)
            good = good && data[displs[r] + i] == r * 1000000 + comm_rank * 10000 + i;
    expect(good, with_types ? "Alltoallw in place" : "Alltoallv in place");
    free(data);
}

static void all_on(MPI_Comm comm)
{
    MPI_Comm ring;
    int one = 1;
    MPI_Comm_rank(comm, &comm_rank);
    MPI_Comm_size(comm, &comm_size);
    MPI_Cart_create(comm, 1, &comm_size, &one, 0, &ring);
    MPI_Request r;
    MPI_Barrier(comm);
    MPI_Ibarrier(comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    small_messages(comm);
    small_collectives(comm);
    small_neighbours(ring);
    for (int i = 0; i < 8; i++)
        exchange_in_place(comm, i % 2);
    completion(comm);
#if MPI_VERSION >= 4
    large_messages(comm);
    large_collectives(comm);
    large_neighbours(ring);
    partitioned(comm);
    barrier_init(comm);
#endif
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm reversed, part;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3 ? 1 : MPI_UNDEFINED, 0, &part);
    all_on(MPI_COMM_WORLD);
    all_on(reversed);
    all_on(MPI_COMM_SELF);
    if (part != MPI_COMM_NULL) {
        all_on(part);
        MPI_Comm_disconnect(&part);
    }
    MPI_Comm_free(&reversed);
#if MPI_VERSION >= 4
    on_freed_communicator();
#endif
    generalised();
    return finish();
}
