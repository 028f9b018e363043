/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * every.h - the body of every.c for one type of count: COUNT and DISP are the types, F(Send) the
 * function, INIT(Allreduce) its persistent form.
 */

/* The blocking, the non-blocking and the persistent form, with the same arguments.  MPICH 4.0 does
 * some of a persistent collective's copying when it is made, so nothing is cleared between; its
 * MPI_Scatter_init fails with more than two ranks, with and without us. */
#if MPI_VERSION >= 4
#define PERSISTENT(Name, prepare, check, ...)                                                      \
    do {                                                                                           \
        MPI_Request persistent;                                                                    \
        if (strcmp(#Name, "Scatter") == 0 && comm_size > 2)                                        \
            break;                                                                                 \
        prepare;                                                                                   \
        INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &persistent);                                       \
        for (int turn = 0; turn < 2; turn++) {                                                     \
            MPI_Start(&persistent);                                                                \
            MPI_Wait(&persistent, MPI_STATUS_IGNORE);                                              \
            expect(check, #Name "_init");                                                          \
        }                                                                                          \
        MPI_Request_free(&persistent);                                                             \
    } while (0)
#else
#define PERSISTENT(Name, prepare, check, ...) (void)0
#endif
#define EACH_FORM(Name, name, prepare, check, ...)                                                 \
    do {                                                                                           \
        prepare;                                                                                   \
        F(Name)(__VA_ARGS__);                                                                      \
        expect(check, #Name);                                                                      \
        prepare;                                                                                   \
        F(I##name)(__VA_ARGS__, &request);                                                         \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
        expect(check, "I" #name);                                                                  \
        PERSISTENT(Name, prepare, check, __VA_ARGS__);                                             \
    } while (0)

/* recvbuf[first + i] == value + i */
static int BODY(run)(int first, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (recvbuf[first + i] != value + i)
            return 0;
    return 1;
}

static int BODY(gathered)(const COUNT *counts, int each)
{
    int good = 1, first = 0;
    for (int r = 0; r < comm_size; r++) {
        int count = counts ? (int)counts[r] : each;
        good = good && BODY(run)(first, count, r * 100);
        first += count;
    }
    return good && recvbuf[first] == -1;
}

static int BODY(exchanged)(int each)
{
    int good = 1;
    for (int r = 0; r < comm_size; r++) {
        int count = each ? each : (r + comm_rank) % 2 + 1;
        good = good && BODY(run)(2 * r, count, r * 100 + 2 * comm_rank);
    }
    return good;
}

static void BODY(reductions)(MPI_Comm comm, const COUNT *counts, int first)
{
    int rank = comm_rank, size = comm_size, root = size - 1, sum = 100 * sum_to(size);
    MPI_Request request;
    EACH_FORM(Allreduce, allreduce, fill(by_rank, 4),
              recvbuf[0] == sum && recvbuf[3] == sum + 3 * size && recvbuf[4] == -1, sendbuf,
              recvbuf, 4, MPI_INT, MPI_SUM, comm);
    EACH_FORM(Allreduce, allreduce, (fill(by_rank, 0), recvbuf[0] = rank),
              recvbuf[0] == size - 1 && recvbuf[1] == -1, MPI_IN_PLACE, recvbuf, 1, MPI_INT,
              MPI_MAX, comm);
    EACH_FORM(Allreduce, allreduce, fill(by_rank, 4), recvbuf[0] == -1, sendbuf, recvbuf, 0,
              MPI_INT, MPI_SUM, comm);
    EACH_FORM(Reduce, reduce, fill(by_rank, 4),
              recvbuf[1] == (rank == root ? sum + size : -1), sendbuf, recvbuf, 4, MPI_INT,
              MPI_SUM, root, comm);
    EACH_FORM(Scan, scan, fill(by_rank, 2), recvbuf[0] == 100 * sum_to(rank + 1), sendbuf, recvbuf,
              2, MPI_INT, MPI_SUM, comm);
    EACH_FORM(Exscan, exscan, fill(by_rank, 2), rank == 0 || recvbuf[0] == 100 * sum_to(rank),
              sendbuf, recvbuf, 2, MPI_INT, MPI_SUM, comm);
    EACH_FORM(Reduce_scatter, reduce_scatter, fill(by_rank, ROOM),
              counts[rank] == 0 || recvbuf[0] == sum + first * size, sendbuf, recvbuf, counts,
              MPI_INT, MPI_SUM, comm);
    EACH_FORM(Reduce_scatter_block, reduce_scatter_block, fill(by_rank, ROOM),
              recvbuf[1] == sum + (2 * rank + 1) * size, sendbuf, recvbuf, 2, MPI_INT, MPI_SUM,
              comm);
}

static void BODY(rooted)(MPI_Comm comm, const COUNT *counts, const DISP *displs, int first)
{
    int rank = comm_rank, size = comm_size, root = size / 2;
    MPI_Request request;
    EACH_FORM(Bcast, bcast, memset(recvbuf, rank == root ? 7 : 0, sizeof recvbuf),
              recvbuf[3] == 0x07070707, recvbuf, 4, MPI_INT, root, comm);
    EACH_FORM(Gather, gather, fill(by_rank, 2), rank != root || BODY(gathered)(NULL, 2), sendbuf, 2,
              MPI_INT, recvbuf, 2, MPI_INT, root, comm);
    EACH_FORM(Gatherv, gatherv, fill(by_rank, 4), rank != root || BODY(gathered)(counts, 0),
              sendbuf, counts[rank], MPI_INT, recvbuf, counts, displs, MPI_INT, root, comm);
    EACH_FORM(Scatter, scatter, fill(by_rank, ROOM), BODY(run)(0, 2, root * 100 + 2 * rank),
              sendbuf, 2, MPI_INT, recvbuf, 2, MPI_INT, root, comm);
    EACH_FORM(Scatterv, scatterv, fill(by_rank, ROOM),
              BODY(run)(0, (int)counts[rank], root * 100 + first), sendbuf, counts, displs, MPI_INT,
              recvbuf, counts[rank], MPI_INT, root, comm);
}

static void BODY(collectives)(MPI_Comm comm)
{
    COUNT counts[MOST_RANKS], pairs[MOST_RANKS];
    DISP displs[MOST_RANKS], places[MOST_RANKS], bytes[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Request request;
    int total = 0;
    for (int r = 0; r < comm_size; r++) {
        counts[r] = r % 3; /* zero among them */
        displs[r] = total;
        total += r % 3;
        pairs[r] = (r + comm_rank) % 2 + 1; /* symmetric */
        places[r] = 2 * r;
        bytes[r] = 2 * r * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    BODY(reductions)(comm, counts, (int)displs[comm_rank]);
    BODY(rooted)(comm, counts, displs, (int)displs[comm_rank]);
    EACH_FORM(Allgather, allgather, fill(by_rank, 2), BODY(gathered)(NULL, 2), sendbuf, 2, MPI_INT,
              recvbuf, 2, MPI_INT, comm);
    EACH_FORM(Allgather, allgather, (fill(by_rank, 2), recvbuf[comm_rank] = comm_rank * 100),
              BODY(gathered)(NULL, 1), MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recvbuf, 1, MPI_INT,
              comm);
    EACH_FORM(Allgatherv, allgatherv, fill(by_rank, 2), BODY(gathered)(counts, 0), sendbuf,
              counts[comm_rank], MPI_INT, recvbuf, counts, displs, MPI_INT, comm);
    EACH_FORM(Alltoall, alltoall, fill(by_rank, ROOM), BODY(exchanged)(2), sendbuf, 2, MPI_INT,
              recvbuf, 2, MPI_INT, comm);
    EACH_FORM(Alltoallv, alltoallv, fill(by_rank, ROOM), BODY(exchanged)(0), sendbuf, pairs, places,
              MPI_INT, recvbuf, pairs, places, MPI_INT, comm);
    EACH_FORM(Alltoallw, alltoallw, fill(by_rank, ROOM), BODY(exchanged)(0), sendbuf, pairs, bytes,
              types, recvbuf, pairs, bytes, types, comm);
}

/* On a periodic line: each has two neighbours, which may be the same or itself. */
static void BODY(neighbours)(MPI_Comm ring)
{
    int rank, size, left, right;
    MPI_Request request;
    MPI_Comm_rank(ring, &rank);
    MPI_Comm_size(ring, &size);
    MPI_Cart_shift(ring, 0, 1, &left, &right);
    COUNT counts[2] = {1, 1};
    DISP displs[2] = {1, 0};
    MPI_Aint bytes[2] = {sizeof(int), 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
#define SAME (memset(recvbuf, -1, sizeof recvbuf), sendbuf[0] = sendbuf[1] = rank * 7)
#define STRAIGHT (recvbuf[0] == left * 7 && recvbuf[1] == right * 7)
#define CROSSED (recvbuf[1] == left * 7 && recvbuf[0] == right * 7)
    EACH_FORM(Neighbor_allgather, neighbor_allgather, SAME, STRAIGHT, sendbuf, 1, MPI_INT, recvbuf,
              1, MPI_INT, ring);
    EACH_FORM(Neighbor_allgatherv, neighbor_allgatherv, SAME, CROSSED, sendbuf, 1, MPI_INT, recvbuf,
              counts, displs, MPI_INT, ring);
    EACH_FORM(Neighbor_alltoall, neighbor_alltoall, SAME, STRAIGHT, sendbuf, 1, MPI_INT, recvbuf, 1,
              MPI_INT, ring);
    EACH_FORM(Neighbor_alltoallv, neighbor_alltoallv, SAME, CROSSED, sendbuf, counts, displs,
              MPI_INT, recvbuf, counts, displs, MPI_INT, ring);
    EACH_FORM(Neighbor_alltoallw, neighbor_alltoallw, SAME, CROSSED, sendbuf, counts, bytes, types,
              recvbuf, counts, bytes, types, ring);
#undef SAME
#undef STRAIGHT
#undef CROSSED
}

/* Each rank sends to the next one and receives from the one before. */
static void BODY(messages)(MPI_Comm comm)
{
    int next = (comm_rank + 1) % comm_size, previous = (comm_rank + comm_size - 1) % comm_size;
    int value = comm_rank * 3, got = -1, wanted = previous * 3;
    MPI_Request r[2], p[10];
    MPI_Status s;
    MPI_Message message;
    char attached[4096], *detached;
    COUNT room = sizeof attached;
    F(Buffer_attach)(attached, room);
#define SENT(how) (MPI_Wait(&r[0], &s), expect(got == wanted && s.MPI_SOURCE == previous, how))
#define POST F(Irecv)((got = -1, &got), 1, MPI_INT, previous, 61, comm, &r[0])
#define BY(Name) (POST, MPI_Barrier(comm), F(Name)(&value, 1, MPI_INT, next, 61, comm), SENT(#Name))
    BY(Send);
    BY(Ssend);
    BY(Bsend);
    BY(Rsend);
#undef BY
#define BY(Name)                                                                                   \
    (POST, MPI_Barrier(comm), F(Name)(&value, 1, MPI_INT, next, 61, comm, &r[1]),                  \
     MPI_Wait(&r[1], MPI_STATUS_IGNORE), SENT(#Name))
    BY(Isend);
    BY(Issend);
    BY(Ibsend);
    BY(Irsend);
#undef BY
    F(Isend)(&value, 1, MPI_INT, next, 62, comm, &r[0]);
    F(Recv)(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &s);
    expect(got == wanted && s.MPI_SOURCE == previous && s.MPI_TAG == 62, "Recv");
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    for (int way = 0; way < 2; way++) {
        F(Isend)(&value, 1, MPI_INT, next, 63, comm, &r[0]);
        MPI_Mprobe(previous, 63, comm, &message, &s);
        got = -1;
        if (way == 0)
            F(Mrecv)(&got, 1, MPI_INT, &message, &s);
        else {
            F(Imrecv)(&got, 1, MPI_INT, &message, &r[1]);
            MPI_Wait(&r[1], &s);
        }
        expect(got == wanted && message == MPI_MESSAGE_NULL, "matched receive");
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
    F(Sendrecv)(&value, 1, MPI_INT, next, 64, &got, 1, MPI_INT, previous, 64, comm, &s);
    expect(got == wanted && s.MPI_TAG == 64, "Sendrecv");
    F(Sendrecv)(&value, 1, MPI_INT, MPI_PROC_NULL, 64, &got, 1, MPI_INT, MPI_PROC_NULL, 64, comm,
                &s);
    expect(s.MPI_SOURCE == MPI_PROC_NULL, "Sendrecv with MPI_PROC_NULL");
    got = value;
    F(Sendrecv_replace)(&got, 1, MPI_INT, next, 65, previous, 65, comm, &s);
    expect(got == wanted && s.MPI_SOURCE == previous, "Sendrecv_replace");
#if MPI_VERSION >= 4
    got = -1;
    F(Isendrecv)(&value, 1, MPI_INT, next, 66, &got, 1, MPI_INT, previous, 66, comm, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    expect(got == wanted, "Isendrecv");
    got = value;
    F(Isendrecv_replace)(&got, 1, MPI_INT, next, 67, previous, 67, comm, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    expect(got == wanted, "Isendrecv_replace");
#endif
    INIT(Recv)(&got, 1, MPI_INT, previous, 68, comm, &p[0]);
    INIT(Send)(&value, 1, MPI_INT, next, 68, comm, &p[1]);
    INIT(Ssend)(&value, 1, MPI_INT, next, 68, comm, &p[2]);
    INIT(Bsend)(&value, 1, MPI_INT, next, 68, comm, &p[3]);
    INIT(Rsend)(&value, 1, MPI_INT, next, 68, comm, &p[4]);
    for (int way = 1; way < 5; way++) {
        got = -1;
        MPI_Start(&p[0]);
        MPI_Barrier(comm);
        MPI_Startall(1, &p[way]);
        MPI_Wait(&p[way], MPI_STATUS_IGNORE);
        MPI_Wait(&p[0], MPI_STATUS_IGNORE);
        expect(got == wanted, "persistent send");
    }
    for (int i = 0; i < 5; i++)
        MPI_Request_free(&p[i]);
    F(Buffer_detach)(&detached, &room);
    expect(detached == attached && room == sizeof attached, "Buffer_detach");
#undef POST
#undef SENT
}

#undef EACH_FORM
#undef PERSISTENT
