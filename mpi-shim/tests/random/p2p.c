/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * p2p.c - messages.
 *
 * step_messages makes a list of messages that all ranks know.  First each rank posts the receives
 * that are to be there early.  Then it goes through the list in order and sends or receives.  Then
 * all requests are completed.  A rank that blocks in the list waits for a rank that is earlier in
 * it, so the first one never waits for long, whatever the modes.  Receives that were posted early
 * and receives in order have tags of their own; within each, equal tags match in order.
 */
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 24, MOST = 300000, EACH_BSEND = 4000, UNIQUE_TAGS = 32 };

enum send_mode {
    SEND,
    SSEND,
    BSEND,
    RSEND,
    ISEND,
    ISSEND,
    IBSEND,
    IRSEND,
    PSEND,
    PSSEND,
    PBSEND,
    PRSEND,
    SEND_MODES
};
enum recv_mode {
    POSTED,
    PERSISTENT,
    RECV,
    PROBE_RECV,
    MPROBE_MRECV,
    IPROBE_RECV,
    IMPROBE_IMRECV,
    RECV_MODES
};

struct message {
    int src_side, src, dst_side, dst; /* sides of the communicator, ranks in the group */
    int type, count, room, tag;
    bool any_source;
    enum send_mode send;
    enum recv_mode recv;
    /* this rank's part */
    MPI_Datatype send_type, recv_type;
    char *out, *in;
    int out_request, in_request; /* index or -1 */
    MPI_Status status;
};

struct batch {
    struct comm *comm;
    int n, requests;
    struct message m[MESSAGES];
    MPI_Request request[2 * MESSAGES];
    MPI_Status status[2 * MESSAGES];
    char *attached;
};

static bool is_mine(const struct comm *c, int side, int rank)
{
    return c->side == side && c->rank == rank;
}
static bool sends(const struct batch *b, const struct message *m)
{
    return is_mine(b->comm, m->src_side, m->src);
}
static bool receives(const struct batch *b, const struct message *m)
{
    return is_mine(b->comm, m->dst_side, m->dst);
}
static bool early(const struct message *m) { return m->recv == POSTED || m->recv == PERSISTENT; }
static bool buffered(const struct message *m)
{
    return m->send == BSEND || m->send == IBSEND || m->send == PBSEND;
}
static bool ready(const struct message *m)
{
    return m->send == RSEND || m->send == IRSEND || m->send == PRSEND;
}

#ifdef OPEN_MPI /* 4.1 sends what is no longer in the buffer: github.com/open-mpi/ompi/pull/14366 */
enum { PERSISTENT_BSEND = 0 };
#else
enum { PERSISTENT_BSEND = 1 };
#endif

/* Modes that may not be: a ready send to a receive that may not be there; a rank that blocks in
 * sending to itself; one buffer for two threads' buffered sends. */
static bool possible(const struct world *w, const struct message *m)
{
    bool self = m->src == m->dst && m->src_side == m->dst_side;
    if (m->send == PBSEND && !PERSISTENT_BSEND)
        return false;
    if (ready(m) && !early(m))
        return false;
    if (buffered(m) && w->threads > 0)
        return false;
    return !self || early(m) || (m->send >= ISEND && m->send != RSEND);
}

static void draw_message(struct world *w, struct batch *b, struct message *m, int i)
{
    struct rng *r = &w->shared;
    struct comm *c = b->comm;
    memset(m, 0, sizeof *m);
    m->src_side = c->shape == INTER ? below(r, 2) : 0;
    m->dst_side = c->shape == INTER ? 1 - m->src_side : 0;
    m->src = below(r, c->group[m->src_side].n);
    m->dst = below(r, c->group[m->dst_side].n);
    m->type = below(r, TYPE_KINDS);
    do {
        m->send = (enum send_mode)below(r, SEND_MODES);
        m->recv = (enum recv_mode)below(r, RECV_MODES);
    } while (!possible(w, m));
    m->count = some_count(r, type_extent(m->type), buffered(m) ? EACH_BSEND : MOST);
    m->room = m->count + (chance(r, 30) ? below(r, 100) : 0);
    m->any_source = chance(r, 20);
    m->tag = m->any_source ? w->step % 900 * UNIQUE_TAGS + i : 30000 + 10 * early(m) + below(r, 3);
}

static MPI_Comm handle(const struct batch *b) { return b->comm->handle; }
static MPI_Request *add_request(struct batch *b, int *index)
{
    *index = b->requests++;
    b->request[*index] = MPI_REQUEST_NULL;
    return &b->request[*index];
}
static int source_of(const struct message *m) { return m->any_source ? MPI_ANY_SOURCE : m->src; }

static void prepare(struct world *w, struct batch *b)
{
    int buffer = 0, packed = 0;
    for (int i = 0; i < b->n; i++) {
        struct message *m = &b->m[i];
        size_t extent = type_extent(m->type);
        m->out_request = m->in_request = -1;
        m->send_type = m->recv_type = MPI_DATATYPE_NULL;
        if (sends(b, m)) {
            m->send_type = make_type(m->type);
            m->out = filled((size_t)m->count * extent, w->seed + (uint64_t)(w->step * 100 + i));
            MPI_Pack_size(m->count, m->send_type, handle(b), &packed);
            if (buffered(m))
                buffer += packed + MPI_BSEND_OVERHEAD;
        }
        if (receives(b, m)) {
            m->recv_type = make_type(m->type);
            m->in = blank((size_t)m->room * extent);
        }
    }
    /* Twice: a buffered message of the round before may still be on its way. */
    b->attached = NULL;
    if (buffer) {
        b->attached = malloc((size_t)buffer * 4);
        MPI_Buffer_attach(b->attached, buffer * 4);
    }
}

static void post_early(struct batch *b, int round)
{
    for (int i = 0; i < b->n; i++) {
        struct message *m = &b->m[i];
        if (!receives(b, m) || !early(m))
            continue;
        if (m->recv == PERSISTENT && round == 0)
            MPI_Recv_init(m->in, m->room, m->recv_type, source_of(m), m->tag, handle(b),
                          add_request(b, &m->in_request));
        if (m->recv == PERSISTENT)
            MPI_Start(&b->request[m->in_request]);
        else if (round == 0)
            MPI_Irecv(m->in, m->room, m->recv_type, source_of(m), m->tag, handle(b),
                      add_request(b, &m->in_request));
        else
            MPI_Irecv(m->in, m->room, m->recv_type, source_of(m), m->tag, handle(b),
                      &b->request[m->in_request]);
    }
}

static void init_send(struct batch *b, struct message *m)
{
    static int (*const init[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                               MPI_Request *) = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init,
                                                 MPI_Rsend_init};
    init[m->send - PSEND](m->out, m->count, m->send_type, m->dst, m->tag, handle(b),
                          add_request(b, &m->out_request));
}

static void send_one(struct batch *b, struct message *m, int round)
{
    static int (*const now[])(const void *, int, MPI_Datatype, int, int,
                              MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    static int (*const later[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    if (m->send < ISEND) {
        now[m->send](m->out, m->count, m->send_type, m->dst, m->tag, handle(b));
        return;
    }
    if (m->send >= PSEND) {
        if (round == 0)
            init_send(b, m);
        MPI_Startall(1, &b->request[m->out_request]);
        return;
    }
    MPI_Request *request =
        round == 0 ? add_request(b, &m->out_request) : &b->request[m->out_request];
    later[m->send - ISEND](m->out, m->count, m->send_type, m->dst, m->tag, handle(b), request);
}

/* A message that a probe has found is received as what the probe said. */
static void receive_one(struct world *w, struct batch *b, struct message *m)
{
    MPI_Message message;
    MPI_Request request;
    int flag = 0, source = source_of(m);
    switch (m->recv) {
    case PROBE_RECV:
        MPI_Probe(source, m->tag, handle(b), &m->status);
        break;
    case IPROBE_RECV:
        while (MPI_Iprobe(source, m->tag, handle(b), &flag, &m->status), !flag)
            if (chance(&w->mine, 1))
                dawdle(w);
        break;
    case MPROBE_MRECV:
        MPI_Mprobe(source, m->tag, handle(b), &message, &m->status);
        MPI_Mrecv(m->in, m->room, m->recv_type, &message, &m->status);
        return;
    case IMPROBE_IMRECV:
        while (MPI_Improbe(source, m->tag, handle(b), &flag, &message, &m->status), !flag)
            if (chance(&w->mine, 1))
                dawdle(w);
        MPI_Imrecv(m->in, m->room, m->recv_type, &message, &request);
        finish(w, 1, &request, &m->status);
        return;
    default:
        MPI_Recv(m->in, m->room, m->recv_type, source, m->tag, handle(b), &m->status);
        return;
    }
    note_status(w, "probed", &m->status, m->recv_type);
    MPI_Recv(m->in, m->room, m->recv_type, m->status.MPI_SOURCE, m->status.MPI_TAG, handle(b),
             &m->status);
}

static void finish_batch(struct world *w, struct batch *b)
{
    finish(w, b->requests, b->request, b->status);
    for (int i = 0; i < b->n; i++) {
        struct message *m = &b->m[i];
        if (m->in_request >= 0)
            m->status = b->status[m->in_request];
        if (!receives(b, m))
            continue;
        size_t bytes = (size_t)m->room * type_extent(m->type) + GUARD;
        clean_gaps(m->type, m->in, (size_t)m->room);
        note_status(w, "received", &m->status, m->recv_type);
        note(w, "message %d from %d, data %016lx", i, m->src, hash_of(m->in, bytes));
        memset(m->in, 0xa5, bytes);
    }
}

static void one_round(struct world *w, struct batch *b, int round, bool barrier)
{
    post_early(b, round);
    if (barrier)
        MPI_Barrier(handle(b));
    for (int i = 0; i < b->n; i++) {
        struct message *m = &b->m[i];
        if (sends(b, m))
            send_one(b, m, round);
        if (receives(b, m) && !early(m))
            receive_one(w, b, m);
        if (chance(&w->mine, 2))
            dawdle(w);
    }
    finish_batch(w, b);
}

static void clean_up(struct batch *b)
{
    void *attached;
    int size;
    for (int i = 0; i < b->requests; i++)
        if (b->request[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&b->request[i]);
    if (b->attached)
        MPI_Buffer_detach(&attached, &size);
    free(b->attached);
    for (int i = 0; i < b->n; i++) {
        struct message *m = &b->m[i];
        if (m->send_type != MPI_DATATYPE_NULL)
            drop_type(m->type, &m->send_type);
        if (m->recv_type != MPI_DATATYPE_NULL)
            drop_type(m->type, &m->recv_type);
        free(m->out);
        free(m->in);
    }
}

void step_messages(struct world *w)
{
    struct batch *b = calloc(1, sizeof *b);
    bool barrier = false;
    b->comm = pick_comm(w, true);
    b->n = 1 + below(&w->shared, MESSAGES);
    for (int i = 0; i < b->n; i++) {
        draw_message(w, b, &b->m[i], i);
        barrier = barrier || ready(&b->m[i]);
    }
    /* A message with its own tag is only told from the next round's by its order. */
    int rounds = 1 + below(&w->shared, 3);
    for (int i = 0; i < b->n; i++)
        if (b->m[i].any_source)
            rounds = 1;
    if (b->comm->side >= 0) {
        prepare(w, b);
        for (int round = 0; round < rounds; round++)
            one_round(w, b, round, barrier);
        clean_up(b);
    }
    free(b);
}

/* --- messages from any source: the receivers are known, the order is not */

enum { WILD = 40 };

struct taken {
    int source, tag, count;
    uint64_t hash;
};

static int by_source(const void *a, const void *b) { return memcmp(a, b, sizeof(struct taken)); }

static void take(struct comm *c, int *buffer, int room, bool any_tag, int tag, int way,
                 struct taken *t)
{
    MPI_Status s;
    MPI_Message message;
    int source = MPI_ANY_SOURCE;
    if (any_tag)
        tag = MPI_ANY_TAG;
    memset(buffer, 0xa5, (size_t)room * sizeof *buffer);
    if (way == 0) {
        MPI_Recv(buffer, room, MPI_INT, source, tag, c->handle, &s);
    } else if (way == 1) {
        MPI_Probe(source, tag, c->handle, &s);
        MPI_Recv(buffer, room, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, c->handle, &s);
    } else {
        MPI_Mprobe(source, tag, c->handle, &message, &s);
        MPI_Mrecv(buffer, room, MPI_INT, &message, &s);
    }
    memset(t, 0, sizeof *t); /* padding as well */
    t->source = s.MPI_SOURCE;
    t->tag = s.MPI_TAG;
    MPI_Get_count(&s, MPI_INT, &t->count);
    t->hash = hash_of(buffer, (size_t)room * sizeof *buffer);
}

static void take_all(struct world *w, struct comm *c, int n, int room, bool any_tag, int tag)
{
    struct taken list[WILD];
    int *buffer = malloc((size_t)room * sizeof *buffer);
    for (int i = 0; i < n; i++) {
        take(c, buffer, room, any_tag, tag, below(&w->mine, 3), &list[i]);
        if (chance(&w->mine, 5))
            dawdle(w);
    }
    free(buffer);
    qsort(list, (size_t)n, sizeof *list, by_source);
    for (int i = 0; i < n; i++)
        note(w, "took from %d tag %d count %d, data %016lx", list[i].source, list[i].tag,
             list[i].count, list[i].hash);
}

void step_wild(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    int n = 1 + below(&w->shared, WILD), size = comm_size(c), room = 3000, mine = 0, out = 0;
    int tag = below(&w->shared, 100);
    bool any_tag = chance(&w->shared, 50);
    MPI_Request request[WILD];
    MPI_Status status[WILD];
    char *data[WILD];
    for (int i = 0; i < n; i++) {
        int src = below(&w->shared, size), dst = below(&w->shared, size);
        int count = below(&w->shared, chance(&w->shared, 20) ? room : 30);
        if (c->side < 0)
            continue;
        mine += dst == c->rank;
        if (src != c->rank)
            continue;
        data[out] = filled((size_t)count * sizeof(int), w->seed + (uint64_t)(w->step * 100 + i));
        MPI_Isend(data[out], count, MPI_INT, dst, any_tag ? tag + i % 3 : tag, c->handle,
                  &request[out]);
        out++;
    }
    if (c->side < 0)
        return;
    take_all(w, c, mine, room, any_tag, tag);
    finish(w, out, request, chance(&w->mine, 50) ? status : NULL);
    for (int i = 0; i < out; i++)
        free(data[i]);
    MPI_Barrier(c->handle); /* else a message of a later step could be taken in this one */
}

/* --- combined sends and receives round a ring */

struct ends {
    int to, from, count, room, type, tag;
    bool replace, last_is_open, later;
};

/* MPICH 4.0 crashes in MPI_Isendrecv to MPI_PROC_NULL, since it looks up the way there. */
static bool can_be_later(const struct ends *e)
{
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
    return e->later && e->to != MPI_PROC_NULL && e->from != MPI_PROC_NULL;
#else
    return e->later;
#endif
}

/* The two in one call that does not wait, where there are such.  MPICH 4.0's give no status, or
 * one of chance numbers. */
static bool exchange_later(struct world *w, MPI_Comm comm, const struct ends *e, MPI_Datatype type,
                           const char *out, char *in)
{
#if MPI4
    MPI_Request request;
    if (!can_be_later(e))
        return false;
    if (e->replace)
        MPI_Isendrecv_replace(in, e->count, type, e->to, e->tag, e->from, e->tag, comm, &request);
    else
        MPI_Isendrecv(out, e->count, type, e->to, e->tag, in, e->room, type, e->from, e->tag, comm,
                      &request);
    finish(w, 1, &request, NULL);
    return true;
#else
    (void)w, (void)comm, (void)e, (void)type, (void)out, (void)in, (void)can_be_later;
    return false;
#endif
}

static void exchange(struct world *w, struct comm *c, const struct ends *e, int i)
{
    size_t extent = type_extent(e->type),
           bytes = (size_t)(e->replace ? e->count : e->room) * extent;
    MPI_Datatype type = make_type(e->type);
    uint64_t key = w->seed + (uint64_t)((w->step * 20 + i) * RANKS + w->rank);
    MPI_Status status;
    char *in = e->replace ? filled(bytes, key) : blank(bytes);
    char *out = filled((size_t)e->count * extent, key);
    if (exchange_later(w, c->handle, e, type, out, in))
        ;
    else if (e->replace)
        MPI_Sendrecv_replace(in, e->count, type, e->to, e->tag, e->from, e->tag, c->handle,
                             &status);
    else
        MPI_Sendrecv(out, e->count, type, e->to, e->tag, in, e->room, type, e->from, e->tag,
                     c->handle, &status);
    clean_gaps(e->type, in, bytes / extent);
    if (!(MPI4 && e->later))
        note_status(w, "exchanged", &status, type);
    note(w, "data %016lx", hash_of(in, bytes + GUARD));
    drop_type(e->type, &type);
    free(in);
    free(out);
}

static int neighbour(int rank, int size, bool last_is_open)
{
    if (last_is_open && (rank < 0 || rank >= size))
        return MPI_PROC_NULL;
    return (rank + size) % size;
}

void step_exchange(struct world *w)
{
    struct comm *c = pick_comm(w, true);
    int times = 1 + below(&w->shared, 6), size = c->group[0].n;
    if (c->shape == INTER && c->group[1].n < size)
        size = c->group[1].n;
    for (int i = 0; i < times; i++) {
        struct ends e = {0};
        int shift = below(&w->shared, size);
        e.later = chance(&w->shared, 25);
        e.last_is_open = chance(&w->shared, 30);
        e.replace = chance(&w->shared, 40);
        e.type = below(&w->shared, TYPE_KINDS);
        if (e.later) /* MPICH 4.0 releases a made type once too often then */
            e.type %= 3;
        if (e.replace && e.type == RECORD) /* MPICH 4.0 sends more of these than it has room for */
            e.type = VECTOR;
        e.count = some_count(&w->shared, type_extent(e.type), MOST);
        e.room = e.count + below(&w->shared, 10);
        e.tag = 30040 + below(&w->shared, 3);
        if (c->side < 0 || c->rank >= size) /* between groups, as many as the smaller one has */
            continue;
        if (c->shape == INTER)
            shift = 0;
        e.to = neighbour(c->rank + shift, size, e.last_is_open);
        e.from = neighbour(c->rank - shift, size, e.last_is_open);
        exchange(w, c, &e, i);
    }
}

/* --- MPI_PROC_NULL at the other end */

static void null_messages(struct world *w, MPI_Comm comm)
{
    int x = 5, flag = -1;
    MPI_Status s;
    MPI_Request request;
    MPI_Message message;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
    MPI_Ssend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
    MPI_Rsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &s);
    note_status(w, "null receive", &s, MPI_INT);
    MPI_Probe(MPI_PROC_NULL, 1, comm, &s);
    note_status(w, "null probe", &s, MPI_INT);
    MPI_Iprobe(MPI_PROC_NULL, MPI_ANY_TAG, comm, &flag, &s);
    note_status(w, "null iprobe", &s, MPI_INT);
    MPI_Mprobe(MPI_PROC_NULL, 1, comm, &message, &s);
    note(w, "no process: %d", message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&x, 1, MPI_INT, &message, &s);
    note_status(w, "null mrecv", &s, MPI_INT);
    note(w, "message null: %d, flag %d", message == MPI_MESSAGE_NULL, flag);
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &request);
    MPI_Wait(&request, &s);
    note_status(w, "null irecv", &s, MPI_INT);
    MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &x, 1, MPI_INT, MPI_PROC_NULL, 2, comm, &s);
    note_status(w, "null exchange", &s, MPI_INT);
}

static void null_requests(struct world *w, MPI_Comm comm)
{
    int flag = -1, which = -5, count = -5, indices[3], x;
    MPI_Status s, three[3];
    MPI_Request request[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Wait(&request[0], &s);
    note_status(w, "wait for nothing", &s, MPI_INT);
    MPI_Test(&request[0], &flag, &s);
    note(w, "flag %d", flag);
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &request[1]); /* inactive */
    MPI_Wait(&request[1], &s);
    note_status(w, "wait for inactive", &s, MPI_INT);
    MPI_Waitall(3, request, three);
    note_status(w, "wait for all of nothing", &three[2], MPI_INT);
    MPI_Waitany(3, request, &which, &s);
    note_status(w, "wait for any of nothing", &s, MPI_INT);
    note(w, "which undefined %d", which == MPI_UNDEFINED);
    MPI_Waitsome(3, request, &count, indices, three);
    note(w, "count undefined %d", count == MPI_UNDEFINED);
    MPI_Testany(3, request, &which, &flag, &s);
    note(w, "which undefined %d flag %d", which == MPI_UNDEFINED, flag);
    MPI_Testsome(3, request, &count, indices, three);
    note(w, "count undefined %d", count == MPI_UNDEFINED);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    note(w, "all of none: %d", flag);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Request_free(&request[1]);
}

void step_null(struct world *w)
{
    struct comm *c = pick_comm(w, true);
    if (c->side < 0)
        return;
    null_messages(w, c->handle);
    null_requests(w, c->handle);
}

void step_cancel(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    MPI_Request request;
    MPI_Status status;
    int x = 0, cancelled = -1;
    if (c->side < 0)
        return;
    MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 31999, c->handle, &request);
    MPI_Cancel(&request);
    finish(w, 1, &request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    note(w, "cancelled %d", cancelled);
}

/* --- partitioned messages */

#if MPI4
static void send_parts(struct world *w, MPI_Request *request, int parts)
{
    int first = below(&w->mine, parts), way = below(&w->mine, 3), list[8];
    for (int i = 0; i < parts; i++)
        list[i] = (first + i) % parts;
    if (way == 1)
        MPI_Pready_list(parts, list, *request);
    if (way == 2 && first > 0)
        MPI_Pready_range(0, first - 1, *request);
    if (way == 2)
        MPI_Pready_range(first, parts - 1, *request);
    for (int i = 0; way == 0 && i < parts; i++) {
        MPI_Pready(list[i], *request);
        if (chance(&w->mine, 10))
            dawdle(w);
    }
}

static void await_parts(struct world *w, MPI_Request *request, int parts)
{
    for (int i = 0; i < parts; i++) {
        int flag = 0;
        while (MPI_Parrived(*request, i, &flag), !flag)
            if (chance(&w->mine, 1))
                dawdle(w);
    }
}

static void parts_round_ring(struct world *w, struct comm *c, int parts, int each, int rounds)
{
    size_t bytes = (size_t)parts * (size_t)each * sizeof(int);
    int size = comm_size(c), to = (c->rank + 1) % size, from = (c->rank + size - 1) % size;
    char *out = filled(bytes, w->seed + (uint64_t)(w->step * RANKS + w->rank)), *in = blank(bytes);
    MPI_Request request[2];
    MPI_Status status[2];
    MPI_Psend_init(out, parts, each, MPI_INT, to, 30050, c->handle, MPI_INFO_NULL, &request[0]);
    MPI_Precv_init(in, parts, each, MPI_INT, from, 30050, c->handle, MPI_INFO_NULL, &request[1]);
    for (int i = 0; i < rounds; i++) {
        MPI_Startall(2, request);
        send_parts(w, &request[0], parts);
        if (chance(&w->mine, 50))
            await_parts(w, &request[1], parts);
        MPI_Wait(&request[0], &status[0]); /* in MPICH 4.0 others than MPI_Wait and MPI_Test fail */
        MPI_Wait(&request[1], &status[1]);
        note(w, "parts %016lx", hash_of(in, bytes + GUARD));
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    free(out);
    free(in);
}
#endif

void step_partitioned(struct world *w)
{
    struct comm *c = pick_comm(w, false);
    int parts = 1 + below(&w->shared, 8), each = 1 + below(&w->shared, 500);
    int rounds = 1 + below(&w->shared, 3);
#if MPI4
    if (c->side >= 0)
        parts_round_ring(w, c, parts, each, rounds);
#else
    (void)c, (void)parts, (void)each, (void)rounds;
#endif
}
