/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * coll.c - collectives of all kinds: blocking, non-blocking and finished some steps later,
 * persistent; on communicators of one and two groups; among all and among neighbours.
 */
#include "coll.h"

#include <stdlib.h>
#include <string.h>

/* --- operations, all associative, so that every algorithm gives the same bits */

enum { OP_KINDS = 8 };

/* (a, b) o (c, d) = (a c, a d + b) modulo a prime: not commutative. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    unsigned long *a = in, *b = inout;
    for (int i = 0; i < *count; i++, a += 2, b += 2) {
        b[1] = (a[0] % 10007 * (b[1] % 10007) + a[1] % 10007) % 10007;
        b[0] = a[0] % 10007 * (b[0] % 10007) % 10007;
    }
}

static void add_three(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    unsigned *a = in, *b = inout;
    for (int i = 0; i < 3 * *count; i++)
        b[i] += a[i];
}

static void make_op(struct coll_call *k)
{
    switch (k->op_kind) {
    case 0:
        k->op = MPI_SUM, k->type = MPI_INT, k->extent = sizeof(int);
        break;
    case 1:
        k->op = MPI_MAX, k->type = MPI_INT, k->extent = sizeof(int);
        break;
    case 2:
        k->op = MPI_BXOR, k->type = MPI_UNSIGNED, k->extent = sizeof(int);
        break;
    case 3:
        k->op = MPI_PROD, k->type = MPI_UNSIGNED_LONG, k->extent = sizeof(long);
        break;
    case 4:
        k->op = MPI_SUM, k->type = MPI_DOUBLE, k->extent = sizeof(double);
        break;
    case 5:
        k->op = MPI_MINLOC, k->type = MPI_2INT, k->extent = 2 * sizeof(int);
        break;
    case 6:
        MPI_Op_create(compose, 0, &k->op);
        MPI_Type_contiguous(2, MPI_UNSIGNED_LONG, &k->type);
        MPI_Type_commit(&k->type);
        k->extent = 2 * sizeof(long);
        break;
    default:
        MPI_Op_create(add_three, 1, &k->op);
        MPI_Type_contiguous(3, MPI_UNSIGNED, &k->type);
        MPI_Type_commit(&k->type);
        k->extent = 3 * sizeof(unsigned);
    }
}

/* Doubles must be whole and small, sums of ints must not overflow. */
static void tame(const struct coll_call *k, char *buffer, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        unsigned char byte = (unsigned char)buffer[i * k->extent];
        int number = byte - 100;
        double real = number;
        if (k->op_kind == 0)
            memcpy(buffer + i * sizeof number, &number, sizeof number);
        if (k->op_kind == 4)
            memcpy(buffer + i * sizeof real, &real, sizeof real);
    }
}

static bool reduces(const struct coll_call *k) { return k->kind >= REDUCE && k->kind < COLL_KINDS; }

/* --- the amounts that ranks send to each other */

/* Elements from one rank of the job to another, the same number wherever it is asked. */
static int amount(const struct world *w, const struct coll_call *k, int from, int to)
{
    if (k->in_place && from >= 0 && to >= 0 && from > to) { /* must be symmetric */
        int swap = from;
        from = to;
        to = swap;
    }
    uint64_t key = mix(w->seed ^ (uint64_t)((k->step * 64 + from + 1) * 64 + to + 1));
    return key % 8 == 0 ? 0 : (int)(key / 8 % (uint64_t)k->scale);
}

static size_t lay_out(int n, const int *counts, int *displs, int gap)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        displs[i] = at;
        at += counts[i] + gap;
    }
    return (size_t)at;
}

static void lay_out_bytes(struct coll_call *k, int n, int *displs, MPI_Aint *addresses)
{
    for (int i = 0; i < n; i++) {
        displs[i] *= (int)k->extent;
        addresses[i] = displs[i];
        k->types[i] = k->type;
    }
}

/* One count for each of those I exchange with. */
static void amounts_each(const struct world *w, struct coll_call *k)
{
    for (int i = 0; i < k->targets; i++)
        k->scounts[i] = amount(w, k, w->rank, k->target_world[i]);
    for (int i = 0; i < k->sources; i++)
        k->rcounts[i] = amount(w, k, k->source_world[i], w->rank);
    k->send_elements = lay_out(k->targets, k->scounts, k->sdispls, 1);
    k->recv_elements = lay_out(k->sources, k->rcounts, k->rdispls, 1);
    if (k->in_place) /* the same layout for both */
        k->send_elements = k->recv_elements;
}

/* This rank sends the same data to all ranks that receive it. */
static void amounts_gathered(const struct world *w, struct coll_call *k)
{
    k->scounts[0] = amount(w, k, w->rank, -1);
    for (int i = 0; i < k->sources; i++)
        k->rcounts[i] = amount(w, k, k->source_world[i], -1);
    k->send_elements = (size_t)k->scounts[0];
    k->recv_elements = lay_out(k->sources, k->rcounts, k->rdispls, 1);
}

static void amounts_scattered(const struct world *w, struct coll_call *k)
{
    k->rcounts[0] = amount(w, k, -1, w->rank);
    for (int i = 0; i < k->targets; i++)
        k->scounts[i] = amount(w, k, -1, k->target_world[i]);
    k->recv_elements = (size_t)k->rcounts[0];
    k->send_elements = lay_out(k->targets, k->scounts, k->sdispls, 1);
}

static void amounts(const struct world *w, struct coll_call *k)
{
    size_t n = (size_t)k->count;
    switch (k->kind) {
    case BARRIER:
        break;
    case GATHER:
    case ALLGATHER:
    case NEIGHBOR_ALLGATHER:
        k->send_elements = n;
        k->recv_elements = n * (size_t)k->sources;
        break;
    case SCATTER:
        k->send_elements = n * (size_t)k->targets;
        k->recv_elements = n;
        break;
    case GATHERV:
    case ALLGATHERV:
    case NEIGHBOR_ALLGATHERV:
        amounts_gathered(w, k);
        break;
    case SCATTERV:
        amounts_scattered(w, k);
        break;
    case ALLTOALL:
    case NEIGHBOR_ALLTOALL:
        k->send_elements = n * (size_t)k->targets;
        k->recv_elements = n * (size_t)k->sources;
        break;
    case ALLTOALLV:
    case NEIGHBOR_ALLTOALLV:
        amounts_each(w, k);
        break;
    case ALLTOALLW:
    case NEIGHBOR_ALLTOALLW:
        amounts_each(w, k);
        lay_out_bytes(k, k->targets, k->sdispls, k->saddresses);
        lay_out_bytes(k, k->sources, k->rdispls, k->raddresses);
        break;
    case REDUCE_SCATTER:
        for (int i = 0; i < k->targets; i++)
            k->rcounts[i] = amount(w, k, -1, k->target_world[i]);
        k->send_elements = k->recv_elements = lay_out(k->targets, k->rcounts, k->rdispls, 0);
        break;
    case REDUCE_SCATTER_BLOCK:
        k->send_elements = k->recv_elements = n * (size_t)k->targets;
        break;
    default:
        k->send_elements = k->recv_elements = n; /* also BCAST */
    }
}

/* --- one call */

static void buffers(const struct world *w, struct coll_call *k)
{
    uint64_t key = mix(w->seed + (uint64_t)(k->step * RANKS + w->rank));
    size_t out = k->send_elements * k->extent, in = k->recv_elements * k->extent;
    k->send = k->send_buffer = filled(out, key);
    bool keep = k->in_place || (k->kind == BCAST && k->am_root);
    k->recv = k->recv_buffer = keep ? filled(in, key) : blank(in);
    if (reduces(k))
        tame(k, k->send_buffer, k->send_elements);
    if (reduces(k) && keep)
        tame(k, k->recv_buffer, k->recv_elements);
    if (k->in_place && (k->kind == SCATTER || k->kind == SCATTERV))
        k->recv = MPI_IN_PLACE;
    else if (k->in_place)
        k->send = MPI_IN_PLACE;
}

static bool rooted(enum coll_kind kind)
{
    return kind == REDUCE || (kind >= BCAST && kind <= SCATTERV);
}

static void place_root(struct coll_call *k, const struct comm *c)
{
    bool here = c->side == k->root_side;
    k->am_root = rooted(k->kind) && here && c->rank == k->root;
    k->root_argument = k->root;
    if (c->shape == INTER && here) {
        k->root_argument = k->am_root ? MPI_ROOT : MPI_PROC_NULL;
        k->idle = rooted(k->kind) && !k->am_root;
    }
    if (rooted(k->kind) && !k->am_root)
        k->in_place = false;
}

/* In place, but for calls that a library fails in.  Open MPI 4.1 gives a non-blocking Alltoallv or
 * Alltoallw in place a tag on those ranks only that receive anything (coll/libnbc); then the tags
 * of later non-blocking collectives differ, those in MPI_Comm_split too, which wait for ever.
 * MPICH before 4.2 crashes in MPI_Reduce with a root other than 0:
 * github.com/pmodels/mpich/issues/6540. */
static bool may_be_in_place(const struct coll_call *k)
{
#ifdef OPEN_MPI
    return k->form == NOW || (k->kind != ALLTOALLV && k->kind != ALLTOALLW);
#elif defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40200000
    return k->kind != REDUCE || k->root == 0;
#else
    return true;
#endif
}

/* MPICH 4.0 does: "message truncated" where it receives and sends in one buffer, where a root is
 * involved, and in what it makes of those between two groups. */
static bool finds_records_too_long(const struct coll_call *k, const struct comm *c)
{
    return rooted(k->kind) || k->in_place || c->shape == INTER;
}

/* The same in all ranks: they all draw it. */
static void draw_call(struct world *w, struct comm *c, struct coll_call *k)
{
    struct rng *r = &w->shared;
    memset(k, 0, sizeof *k);
    k->step = w->step;
    k->kind = (enum coll_kind)below(r, COLL_KINDS);
    k->form = (enum form)below(r, 3);
    k->in_place = chance(r, 25) && c->shape != INTER;
    k->root_side = c->shape == INTER ? below(r, 2) : 0;
    k->root = below(r, c->group[k->root_side].n);
    k->type_kind = below(r, TYPE_KINDS);
    k->op_kind = below(r, OP_KINDS);
    k->count = some_count(r, 8, 60000);
    k->scale = 1 + some_count(r, 8, 20000);
    if (c->shape == INTER && k->kind >= REDUCE_SCATTER && k->kind < COLL_KINDS)
        k->kind = BARRIER;
    if (k->kind == BARRIER || k->kind == BCAST)
        k->in_place = false;
    if (k->form == PERSISTENT_FORM && !PERSISTENT_COLLECTIVES)
        k->form = LATER;
    k->in_place = k->in_place && may_be_in_place(k);
    if (k->type_kind == RECORD && finds_records_too_long(k, c))
        k->type_kind = VECTOR;
}

static void prepare(struct world *w, struct coll_call *k)
{
    if (reduces(k)) {
        make_op(k);
    } else {
        k->type = make_type(k->type_kind);
        k->extent = type_extent(k->type_kind);
    }
    amounts(w, k);
    buffers(w, k);
}

static void note_result(struct world *w, const struct coll_call *k)
{
    if (!reduces(k))
        clean_gaps(k->type_kind, k->recv_buffer, k->recv_elements);
    bool has = k->recv != MPI_IN_PLACE && !k->idle;
    if (k->kind == EXSCAN && k->rank == 0) /* the standard leaves the first rank's undefined */
        has = false;
    if ((k->kind == GATHER || k->kind == GATHERV || k->kind == REDUCE) && !k->am_root)
        has = false;
    size_t bytes = k->recv_elements * k->extent + GUARD;
    if (k->in_place && k->kind == REDUCE_SCATTER) /* the rest of it may be used as scratch */
        bytes = (size_t)k->rcounts[k->rank] * k->extent;
    else if (k->in_place && k->kind == REDUCE_SCATTER_BLOCK)
        bytes = (size_t)k->count * k->extent;
    uint64_t hash = has ? hash_of(k->recv_buffer, bytes) : 0;
    note(w, "collective %d form %d of step %d: %zu elements, data %016lx", (int)k->kind,
         (int)k->form, k->step, k->recv_elements, hash);
}

static void release(struct coll_call *k)
{
    if (reduces(k) && k->op_kind >= 6) {
        MPI_Op_free(&k->op);
        MPI_Type_free(&k->type);
    } else if (!reduces(k)) {
        drop_type(k->type_kind, &k->type);
    }
    free(k->send_buffer);
    free(k->recv_buffer);
    free(k);
}

static void persistent_rounds(struct world *w, struct coll_call *k, MPI_Request *request,
                              int rounds)
{
    MPI_Status status;
    for (int i = 0; i < rounds; i++) {
        if (chance(&w->mine, 50))
            MPI_Start(request);
        else
            MPI_Startall(1, request);
        if (chance(&w->mine, 20))
            dawdle(w);
        finish(w, 1, request, chance(&w->mine, 50) ? &status : NULL);
        note_result(w, k);
    }
    MPI_Request_free(request);
}

/* Any rank notes that the call is under way, so that all know when there is room for another. */
static void postpone(struct world *w, struct comm *c, struct coll_call *k, MPI_Request request,
                     int finish_step)
{
    for (int i = 0; i < PENDING; i++) {
        struct pending *p = &w->pending[i];
        if (p->used)
            continue;
        *p = (struct pending){.used = true,
                              .mine = c->side >= 0,
                              .finish = finish_step,
                              .request = request,
                              .comm = c,
                              .call = k};
        return;
    }
    if (c->side >= 0) {
        MPI_Status status;
        finish(w, 1, &request, &status);
        note_result(w, k);
        release(k);
    }
}

static void run_call(struct world *w, struct comm *c, struct coll_call *k, int finish_step,
                     int rounds)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (c->side >= 0) {
        prepare(w, k);
        note(w, "call %d form %d count %d in place %d op %d", (int)k->kind, (int)k->form, k->count,
             k->in_place, k->op_kind);
        coll_start(k, c->handle, &request);
    }
    if (k->form == LATER) {
        postpone(w, c, c->side >= 0 ? k : NULL, request, finish_step);
        if (c->side < 0)
            free(k);
        return;
    }
    if (c->side < 0) {
        free(k);
        return;
    }
    if (k->form == NOW)
        note_result(w, k);
    else
        persistent_rounds(w, k, &request, rounds);
    release(k);
}

void step_collective(struct world *w)
{
    struct comm *c = pick_comm(w, true);
    struct coll_call *k = malloc(sizeof *k);
    draw_call(w, c, k);
    int finish_step = w->step + below(&w->shared, 5), rounds = 1 + below(&w->shared, 3);
    if (c->side >= 0) {
        const struct ranks *peers = &c->group[c->shape == INTER ? 1 - c->side : c->side];
        k->sources = k->targets = peers->n;
        for (int i = 0; i < peers->n; i++)
            k->source_world[i] = k->target_world[i] = peers->world[i];
        place_root(k, c);
        k->rank = c->rank;
    }
    run_call(w, c, k, finish_step, rounds);
}

void finish_pending(struct world *w, int step)
{
    MPI_Request request[PENDING];
    MPI_Status status[PENDING];
    int which[PENDING], n = 0;
    for (int i = 0; i < PENDING; i++) {
        struct pending *p = &w->pending[i];
        if (!p->used || p->finish > step)
            continue;
        p->used = false;
        if (p->mine) {
            request[n] = p->request;
            which[n++] = i;
        }
    }
    if (n == 0)
        return;
    finish(w, n, request, chance(&w->mine, 50) ? status : NULL);
    for (int i = 0; i < n; i++) {
        note_result(w, w->pending[which[i]].call);
        release(w->pending[which[i]].call);
    }
}

/* --- neighbours */

/* MPICH before 4.1 copies as many of the counts to send as there are neighbours to receive from,
 * and the other way round, and uses what memory holds behind them for the rest: in a graph the
 * two numbers differ.  github.com/pmodels/mpich/issues/6233 */
static bool mistakes_counts(enum coll_kind kind, enum shape shape)
{
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100300
    return kind == NEIGHBOR_ALLTOALLW && shape == GRAPH;
#else
    (void)kind;
    (void)shape;
    return false;
#endif
}

static void cart_neighbours(struct coll_call *k, const struct comm *c)
{
    for (int d = 0; d < c->dims; d++) {
        int ends[2];
        MPI_Cart_shift(c->handle, d, 1, &ends[0], &ends[1]);
        for (int e = 0; e < 2; e++) /* no rank's amount: any number, the same for both */
            k->source_world[k->sources++] = ends[e] < 0 ? RANKS : c->group[0].world[ends[e]];
    }
    k->targets = k->sources;
    memcpy(k->target_world, k->source_world, sizeof k->target_world);
}

static void graph_neighbours(struct coll_call *k, const struct comm *c)
{
    for (int i = 0; i < c->in.n; i++)
        k->source_world[k->sources++] = c->group[0].world[c->in.world[i]];
    for (int i = 0; i < c->out.n; i++)
        k->target_world[k->targets++] = c->group[0].world[c->out.world[i]];
}

void step_neighbour(struct world *w)
{
    struct comm *c = pick_shape(w, chance(&w->shared, 50) ? CART : GRAPH);
    if (!c)
        return;
    struct coll_call *k = malloc(sizeof *k);
    draw_call(w, c, k);
    k->kind = COLL_KINDS + 1 + below(&w->shared, NEIGHBOR_END - COLL_KINDS - 1);
    if (mistakes_counts(k->kind, c->shape))
        k->kind = NEIGHBOR_ALLTOALLV;
    k->in_place = false;
    int finish_step = w->step + below(&w->shared, 5), rounds = 1 + below(&w->shared, 3);
    if (c->side >= 0 && c->shape == CART)
        cart_neighbours(k, c);
    else if (c->side >= 0)
        graph_neighbours(k, c);
    run_call(w, c, k, finish_step, rounds);
}
