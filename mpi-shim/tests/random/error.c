/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * error.c - errors on purpose: what a call returns, and which error handler was called with what.
 * Local ones, which MPI finds in the arguments of one rank; ones that all ranks make together;
 * and messages that are longer than their receiver's buffer.
 */
#include "random.h"

#include <stdlib.h>
#include <string.h>

static void called(int name, const MPI_Comm *comm, const int *code)
{
    struct world *w = this_world;
    int rank;
    if (*comm != MPI_COMM_NULL) /* callbacks may call MPI */
        MPI_Comm_rank(*comm, &rank);
    w->handler_calls++;
    w->handler_name = name;
    MPI_Error_class(*code, &w->handler_class);
}
static void handler_a(MPI_Comm *comm, int *code, ...) { called(1, comm, code); }
static void handler_b(MPI_Comm *comm, int *code, ...) { called(2, comm, code); }
static void handler_world(MPI_Comm *comm, int *code, ...) { called(3, comm, code); }
static void handler_self(MPI_Comm *comm, int *code, ...) { called(4, comm, code); }

/* A handler's kind: MPI_ERRORS_RETURN, or one of ours. */
enum { RETURN, HANDLER_A, HANDLER_B, HANDLER_WORLD, HANDLER_SELF };
static MPI_Comm_errhandler_function *const functions[] = {NULL, handler_a, handler_b, handler_world,
                                                          handler_self};

struct handled {
    MPI_Comm comm;
    MPI_Errhandler old, mine;
    int kind;
};

static void set_handler(struct handled *h, MPI_Comm comm, int kind)
{
    *h = (struct handled){.comm = comm, .kind = kind, .mine = MPI_ERRORS_RETURN};
    MPI_Comm_get_errhandler(comm, &h->old);
    if (kind != RETURN)
        MPI_Comm_create_errhandler(functions[kind], &h->mine);
    MPI_Comm_set_errhandler(comm, h->mine);
}

static void restore_handler(struct handled *h)
{
    MPI_Comm_set_errhandler(h->comm, h->old);
    if (h->old != MPI_ERRORS_ARE_FATAL && h->old != MPI_ERRORS_RETURN)
        MPI_Errhandler_free(&h->old);
    if (h->kind != RETURN)
        MPI_Errhandler_free(&h->mine);
}

/* An error that a library does not know the communicator of goes to one of these; with threads,
 * they are not one thread's to set. */
struct elsewhere {
    struct handled world, self;
};

static void set_elsewhere(const struct world *w, struct elsewhere *e)
{
    if (w->threads > 0)
        return;
    set_handler(&e->self, MPI_COMM_SELF, HANDLER_SELF);
    set_handler(&e->world, MPI_COMM_WORLD, HANDLER_WORLD);
}

static void restore_elsewhere(const struct world *w, struct elsewhere *e)
{
    if (w->threads > 0)
        return;
    restore_handler(&e->world);
    restore_handler(&e->self);
}

static void note_error(struct world *w, const char *what, int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    note(w, "%s: class %d; handler %d called %d times with class %d", what, class, w->handler_name,
         w->handler_calls, w->handler_class);
    w->handler_calls = w->handler_name = w->handler_class = 0;
}

/* --- in one rank's arguments */

struct bad {
    int count, peer, tag;
    MPI_Datatype type;
};

/* One thing is wrong, or two. */
static struct bad draw_bad(struct rng *r, int peers)
{
    struct bad b = {1, below(r, peers), 3, MPI_INT};
    int times = 1 + chance(r, 20);
    for (int i = 0; i < times; i++)
        switch (below(r, 4)) {
        case 0:
            b.count = -1 - below(r, 3);
            break;
        case 1:
            b.peer = chance(r, 50) ? peers + below(r, 3) : -77;
            break;
        case 2:
            b.tag = -50;
            break;
        default:
            b.type = MPI_DATATYPE_NULL;
        }
    return b;
}

static int bad_send(int way, const struct bad *b, MPI_Comm comm)
{
    static int (*const send[])(const void *, int, MPI_Datatype, int, int,
                               MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Rsend};
    static int (*const isend[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Irsend};
    int data[8] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    if (way < 3)
        return send[way](data, b->count, b->type, b->peer, b->tag, comm);
    return isend[way - 3](data, b->count, b->type, b->peer, b->tag, comm, &request);
}

static int bad_receive(int way, const struct bad *b, MPI_Comm comm)
{
    int data[8] = {0}, more[8] = {0}, flag = 0;
    MPI_Status s;
    MPI_Message message;
    MPI_Request request = MPI_REQUEST_NULL;
    struct bad probe = *b;
    if (way >= 8 && probe.count < 0) /* a probe has no count and no type */
        probe.peer = -77;
    if (way >= 8 && probe.type == MPI_DATATYPE_NULL)
        probe.tag = -50;
    switch (way) {
    case 6:
        return MPI_Recv(data, b->count, b->type, b->peer, b->tag, comm, &s);
    case 7:
        return MPI_Irecv(data, b->count, b->type, b->peer, b->tag, comm, &request);
    case 8:
        return MPI_Probe(probe.peer, probe.tag, comm, &s);
    case 9:
        return MPI_Mprobe(probe.peer, probe.tag, comm, &message, &s);
    case 10:
        return MPI_Iprobe(probe.peer, probe.tag, comm, &flag, &s);
    case 11:
        return MPI_Sendrecv(data, 1, MPI_INT, MPI_PROC_NULL, 1, more, b->count, b->type, b->peer,
                            b->tag, comm, &s);
    default:
        return MPI_Sendrecv(data, b->count, b->type, b->peer, b->tag, more, 1, MPI_INT,
                            MPI_PROC_NULL, 1, comm, &s);
    }
}

void step_error(struct world *w)
{
    struct comm *c = pick_comm(w, true);
    int times = 1 + below(&w->shared, 5);
    struct rng r = {mix(w->seed + (uint64_t)(w->step * RANKS + w->rank))};
    if (c->side < 0)
        return;
    struct handled h;
    struct elsewhere e;
    set_elsewhere(w, &e);
    set_handler(&h, c->handle, below(&r, 3));
    for (int i = 0; i < times; i++) {
        struct bad b = draw_bad(&r, remote_size(c));
        int way = below(&r, 13);
        char what[64];
        int code = way < 6 ? bad_send(way, &b, c->handle) : bad_receive(way, &b, c->handle);
        snprintf(what, sizeof what, "bad call %d", way);
        note_error(w, what, code);
    }
    restore_handler(&h);
    restore_elsewhere(w, &e);
}

/* --- made by all ranks together */

static int common_error(int way, MPI_Comm comm, int size)
{
    int in[RANKS * 4] = {0}, out[RANKS * 4] = {0};
    double real[RANKS] = {0}, result[RANKS] = {0};
    MPI_Comm new = MPI_COMM_NULL;
    int dims[2] = {size + 1, 2}, periodic[2] = {0, 0};
    switch (way) {
    case 0:
        return MPI_Bcast(in, 1, MPI_INT, size + 3, comm);
    case 1:
        return MPI_Bcast(in, -1, MPI_INT, 0, comm);
    case 2:
        return MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm);
    case 3:
        return MPI_Allreduce(real, result, 1, MPI_DOUBLE, MPI_BAND, comm);
    case 4:
        return MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
    case 5:
        return MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, -5, comm);
    case 6:
        return MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, size, comm);
    case 7:
        return MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, -9, comm);
    case 8:
        return MPI_Alltoall(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_DATATYPE_NULL, comm);
    case 9:
        return MPI_Allgather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_DATATYPE_NULL, comm);
    case 10:
        return MPI_Comm_split(comm, -44, 0, &new);
    case 11:
        return MPI_Cart_create(comm, 2, dims, periodic, 0, &new);
    case 12:
        return MPI_Scan(real, result, 1, MPI_DOUBLE, MPI_BXOR, comm);
    case 13:
        return MPI_Exscan(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
    case 14:
        return MPI_Reduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, comm);
    default:
        return MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, comm);
    }
}

#ifdef OPEN_MPI
enum { NULL_WAYS = 8 }; /* the rest ends the job */
#else
enum { NULL_WAYS = 11 };
#endif

/* Errors of MPI_COMM_NULL go to the handler of a communicator that is always there. */
static int null_error(int way)
{
    int x = 0, y = 0, flag;
    MPI_Status s;
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_NULL, new;
    switch (way) {
    case 0:
        return MPI_Send(&x, 1, MPI_INT, 0, 1, comm);
    case 1:
        return MPI_Recv(&x, 1, MPI_INT, 0, 1, comm, &s);
    case 2:
        return MPI_Barrier(comm);
    case 3:
        return MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    case 4:
        return MPI_Bcast(&x, 1, MPI_INT, 0, comm);
    case 5:
        return MPI_Comm_dup(comm, &new);
    case 6:
        return MPI_Comm_free(&comm);
    case 7:
        return MPI_Irecv(&x, 1, MPI_INT, 0, 1, comm, &request);
    case 8:
        return MPI_Iprobe(0, 1, comm, &flag, &s);
    case 9:
        return MPI_Ibarrier(comm, &request);
    default:
        return MPI_Probe(0, 1, comm, &s);
    }
}

void step_common_error(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    int way = below(&w->shared, 16), null_way = below(&w->shared, NULL_WAYS),
        kind = below(&w->shared, 3);
    struct handled h;
    struct elsewhere e;
    char what[64];
    set_elsewhere(w, &e);
    if (c->side >= 0 && !(way == 3 && comm_size(c) == 1)) {
        set_handler(&h, c->handle, kind);
        snprintf(what, sizeof what, "all wrong %d", way);
        note_error(w, what, common_error(way, c->handle, comm_size(c)));
        restore_handler(&h);
    }
    if (w->threads == 0) {
        snprintf(what, sizeof what, "no communicator %d", null_way);
        note_error(w, what, null_error(null_way));
    }
    restore_elsewhere(w, &e);
}

/* --- messages that are too long */

enum { TOO_LONG = 40, ROOM = 7 };

static void receive_too_long(struct world *w, MPI_Comm comm, int source, int way)
{
    int data[TOO_LONG], code = 0, flag = 0, which = -1;
    MPI_Status s, many[1];
    MPI_Message message;
    MPI_Request request = MPI_REQUEST_NULL;
    memset(data, 0, sizeof data);
    memset(many, 0, sizeof many);
#ifdef OPEN_MPI /* 4.1 waits for ever in MPI_Waitall if a request has failed before it */
    if (way == 4)
        way = 3;
#endif
    if (way > 2)
        code = MPI_Irecv(data, ROOM, MPI_INT, source, 30060, comm, &request);
    switch (way) {
    case 0:
        code = MPI_Recv(data, ROOM, MPI_INT, source, 30060, comm, &s);
        break;
    case 1:
        code = MPI_Sendrecv(&which, 1, MPI_INT, MPI_PROC_NULL, 1, data, ROOM, MPI_INT, source,
                            30060, comm, &s);
        break;
    case 2:
        MPI_Mprobe(source, 30060, comm, &message, &s);
        code = MPI_Mrecv(data, ROOM, MPI_INT, &message, &s);
        break;
    case 3:
        code = MPI_Wait(&request, &s);
        break;
    case 4:
        code = MPI_Waitall(1, &request, many);
        MPI_Error_class(many[0].MPI_ERROR, &which);
        note(w, "class in status %d", which);
        break;
    case 5:
        code = MPI_Waitany(1, &request, &which, &s);
        break;
    default:
        while (code == MPI_SUCCESS && !flag)
            code = MPI_Test(&request, &flag, &s);
    }
    note(w, "request null %d, data %016lx", request == MPI_REQUEST_NULL,
         hash_of(data, sizeof data));
    char what[64];
    snprintf(what, sizeof what, "too long %d", way);
    if (way < 3) /* mpi-shim(7), LIMITS: with MPICH it may be another communicator's handler */
        w->handler_name = w->handler_calls = w->handler_class = 0;
    note_error(w, what, code);
}

void step_truncate(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    int n = comm_size(c), way = below(&w->shared, 7), kind = below(&w->shared, 3);
    int src = below(&w->shared, n), dst = below(&w->shared, n);
    int data[TOO_LONG] = {1, 2, 3};
    struct handled h;
    struct elsewhere e;
    MPI_Request request = MPI_REQUEST_NULL;
    if (c->side < 0)
        return;
    set_elsewhere(w, &e);
    set_handler(&h, c->handle, kind);
    if (c->rank == src)
        MPI_Isend(data, TOO_LONG, MPI_INT, dst, 30060, c->handle, &request);
    if (c->rank == dst)
        receive_too_long(w, c->handle, src, way);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    restore_handler(&h);
    restore_elsewhere(w, &e);
}
