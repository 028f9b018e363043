/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * world.c - the communicators of a random program.  All ranks keep the same list, also of those
 * that they are not in: a rank that is asked to make one from it must know that it is not asked.
 */
#include "random.h"

#include <string.h>

/* Sub-communicators are made by colour: groups[colour] lists the ranks of `parent` in it, in the
 * order of their keys. */
static struct ranks by_colour(const struct ranks *parent, const int *colour, const int *key,
                              int wanted)
{
    struct ranks out = {0};
    for (int k = -1; k < RANKS; k++)
        for (int r = 0; r < parent->n; r++)
            if (colour[r] == wanted && key[r] == k)
                out.world[out.n++] = parent->world[r];
    return out;
}

static int find(const struct ranks *ranks, int world_rank)
{
    for (int i = 0; i < ranks->n; i++)
        if (ranks->world[i] == world_rank)
            return i;
    return -1;
}

/* Where am I in c, whose groups are known? */
static void locate(struct world *w, struct comm *c)
{
    c->side = -1;
    for (int g = 0; g < 2; g++) {
        int rank = find(&c->group[g], w->rank);
        if (rank >= 0) {
            c->side = g;
            c->rank = rank;
        }
    }
}

static void check(struct world *w, struct comm *c)
{
    int rank = -1, size = -1;
    if (c->side < 0) {
        require(w, c->handle == MPI_COMM_NULL, "a communicator that I should not be in");
        return;
    }
    require(w, c->handle != MPI_COMM_NULL, "not in the communicator");
    MPI_Comm_rank(c->handle, &rank);
    MPI_Comm_size(c->handle, &size);
    require(w, rank == c->rank && size == c->group[c->side].n, "wrong rank or size");
}

static struct comm *free_place(struct world *w)
{
    for (int i = 1; i < COMMS; i++)
        if (!w->comm[i].used)
            return &w->comm[i];
    return NULL;
}

void world_start(struct world *w, MPI_Comm base)
{
    struct comm *c = &w->comm[0];
    memset(w->comm, 0, sizeof w->comm);
    memset(w->pending, 0, sizeof w->pending);
    c->used = true;
    c->group[0].n = w->size;
    for (int r = 0; r < w->size; r++)
        c->group[0].world[r] = r;
    c->handle = base;
    locate(w, c);
}

struct comm *pick_comm(struct world *w, bool inter_too)
{
    struct comm *list[COMMS];
    int n = 0;
    for (int i = 0; i < COMMS; i++)
        if (w->comm[i].used && (inter_too || w->comm[i].shape != INTER))
            list[n++] = &w->comm[i];
    return list[below(&w->shared, n)];
}

struct comm *pick_shape(struct world *w, enum shape shape)
{
    struct comm *list[COMMS];
    int n = 0;
    for (int i = 0; i < COMMS; i++)
        if (w->comm[i].used && w->comm[i].shape == shape)
            list[n++] = &w->comm[i];
    return n ? list[below(&w->shared, n)] : NULL;
}

/* --- making one */

static void make_dup(struct world *w, struct comm *from, struct comm *to)
{
    int way = below(&w->shared, 3 + MPI4);
    MPI_Request request;
    MPI_Comm old = from->handle;
    *to = *from;
    if (from->side < 0)
        return;
    if (way == 0) {
        MPI_Comm_dup(old, &to->handle);
    } else if (way == 1) {
        MPI_Comm_dup_with_info(old, MPI_INFO_NULL, &to->handle);
    } else {
#if MPI4
        if (way == 3)
            MPI_Comm_idup_with_info(old, MPI_INFO_NULL, &to->handle, &request);
        else
#endif
            MPI_Comm_idup(old, &to->handle, &request);
        dawdle(w);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void make_split(struct world *w, struct comm *from, struct comm *to)
{
    int colour[RANKS], key[RANKS], colours = 1 + below(&w->shared, 3), size = from->group[0].n;
    for (int r = 0; r < size; r++) {
        colour[r] = below(&w->shared, colours + 1) - 1; /* -1: MPI_UNDEFINED */
        key[r] = below(&w->shared, 4);
    }
    int kept = from->side < 0 ? -1 : colour[from->rank], one = below(&w->shared, colours);
    if (from->side >= 0)
        MPI_Comm_split(from->handle, kept < 0 ? MPI_UNDEFINED : kept, key[from->rank], &to->handle);
    /* The list has room for one: the other colours' are freed again. */
    to->group[0] = by_colour(&from->group[0], colour, key, one);
    if (to->handle != MPI_COMM_NULL && kept != one)
        MPI_Comm_free(&to->handle);
}

#if MPI4
/* The threads' groups have the same members, so their names must tell them apart. */
static void create_from_group(const struct world *w, MPI_Group group, MPI_Comm *made)
{
    char name[40];
    snprintf(name, sizeof name, "random-%d-%d", w->thread, w->step);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, made);
}
#endif

static void make_create(struct world *w, struct comm *from, struct comm *to)
{
    int list[RANKS], n = 0, size = from->group[0].n, how = below(&w->shared, 2 + MPI4);
    MPI_Group all, some;
    for (int r = size - 1; r >= 0; r--)
        if (chance(&w->shared, 70)) {
            list[n] = r;
            to->group[0].world[n++] = from->group[0].world[r];
        }
    to->group[0].n = n;
    locate(w, to);
    if (from->side < 0)
        return;
    MPI_Comm_group(from->handle, &all);
    MPI_Group_incl(all, n, list, &some);
    if (how == 0)
        MPI_Comm_create(from->handle, some, &to->handle);
    else if (how == 1 && to->side >= 0)
        MPI_Comm_create_group(from->handle, some, 17, &to->handle);
#if MPI4
    else if (to->side >= 0)
        create_from_group(w, some, &to->handle);
#endif
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static void make_shared(struct comm *from, struct comm *to)
{
    to->group[0] = from->group[0]; /* all ranks are on one node */
    if (from->side >= 0)
        MPI_Comm_split_type(from->handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &to->handle);
}

static void make_cart(struct world *w, struct comm *from, struct comm *to)
{
    int periodic[2] = {below(&w->shared, 2), below(&w->shared, 2)}, size = from->group[0].n;
    int dims[2] = {1 + below(&w->shared, size), 1};
    to->dims = 1 + below(&w->shared, 2);
    if (to->dims == 2)
        dims[1] = size / dims[0];
    to->shape = CART;
    to->group[0] = from->group[0];
    to->group[0].n = dims[0] * dims[1];
    memcpy(to->extent, dims, sizeof dims);
    if (from->side >= 0)
        MPI_Cart_create(from->handle, to->dims, dims, periodic, 0, &to->handle);
}

/* Of a grid, all or one of its rows or columns; the others' are freed again. */
static void make_part_of_cart(struct world *w, struct comm *from, struct comm *to)
{
    int keep[2] = {1, from->dims == 2 ? below(&w->shared, 2) : 0}, width = from->extent[1];
    if (keep[1])
        keep[0] = below(&w->shared, 2);
    int ways = keep[0] && keep[1] ? 1 : keep[0] ? width : from->extent[0], mine = -1;
    int one = below(&w->shared, ways);
    to->shape = CART;
    to->dims = keep[0] + keep[1];
    to->extent[0] = from->extent[keep[0] ? 0 : 1];
    to->extent[1] = keep[0] && keep[1] ? width : 1;
    for (int r = 0; r < from->group[0].n; r++) {
        int part = ways == 1 ? 0 : keep[0] ? r % width : r / width;
        if (r == from->rank)
            mine = part;
        if (part == one)
            to->group[0].world[to->group[0].n++] = from->group[0].world[r];
    }
    if (from->side < 0)
        return;
    MPI_Cart_sub(from->handle, keep, &to->handle);
    if (mine != one)
        MPI_Comm_free(&to->handle);
}

typedef bool edges[RANKS][RANKS];

/* Each edge is told by the rank that it comes from.  In which order neighbours are then is not
 * said, so it is not used further. */
static void check_told_edges(struct world *w, const struct comm *from, const struct comm *to)
{
    int in[RANKS], out[RANKS], n_in = -1, n_out = -1, weighted, sum = 0, wanted = 0, got[RANKS];
    MPI_Comm comm;
    MPI_Dist_graph_create(from->handle, to->out.n > 0, &from->rank, &to->out.n, to->out.world,
                          MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &weighted);
    require(w, n_in == to->in.n && n_out == to->out.n, "wrong number of neighbours");
    /* no more: MPICH 4.0 copies as many as it is told that there is room for */
    MPI_Dist_graph_neighbors(comm, n_in, in, MPI_UNWEIGHTED, n_out, out, MPI_UNWEIGHTED);
    MPI_Neighbor_allgather(&from->rank, 1, MPI_INT, got, 1, MPI_INT, comm);
    for (int i = 0; i < n_in; i++) {
        require(w, got[i] == in[i], "another neighbour's number");
        sum += got[i];
        wanted += to->in.world[i];
    }
    require(w, sum == wanted, "wrong neighbours");
    MPI_Comm_free(&comm);
}

/* All edges are told by every rank; both ways, since neighbours are for both. */
static void make_known_graph(struct comm *from, struct comm *to, const edges edge)
{
    int indices[RANKS], list[RANKS * RANKS], n = 0;
    for (int r = 0; r < from->group[0].n; r++) {
        for (int other = 0; other < from->group[0].n; other++)
            if (other != r && (edge[r][other] || edge[other][r])) {
                if (r == from->rank)
                    to->in.world[to->in.n++] = other;
                list[n++] = other;
            }
        indices[r] = n;
    }
    to->out = to->in;
    MPI_Graph_create(from->handle, from->group[0].n, indices, list, 0, &to->handle);
}

static void make_graph(struct world *w, struct comm *from, struct comm *to)
{
    edges edge;
    int size = from->group[0].n, how = below(&w->shared, 4);
    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            edge[a][b] = chance(&w->shared, 40);
    to->shape = GRAPH;
    to->group[0] = from->group[0];
    if (from->side < 0)
        return;
    if (how == 0) {
        make_known_graph(from, to, edge);
        return;
    }
    for (int r = 0; r < size; r++) {
        if (edge[r][from->rank])
            to->in.world[to->in.n++] = r;
        if (edge[from->rank][r])
            to->out.world[to->out.n++] = r;
    }
    if (how == 1)
        check_told_edges(w, from, to);
    MPI_Dist_graph_create_adjacent(from->handle, to->in.n, to->in.world, MPI_UNWEIGHTED, to->out.n,
                                   to->out.world, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &to->handle);
}

static void make_inter(struct world *w, struct comm *from, struct comm *to)
{
    int cut = 1 + below(&w->shared, from->group[0].n - 1), size = from->group[0].n;
    to->shape = INTER;
    for (int r = 0; r < size; r++) {
        struct ranks *g = &to->group[r >= cut];
        g->world[g->n++] = from->group[0].world[r];
    }
    if (from->side < 0)
        return;
    MPI_Comm half;
    bool low = from->rank < cut;
    MPI_Comm_split(from->handle, low, from->rank, &half);
    MPI_Intercomm_create(half, 0, from->handle, low ? cut : 0, 19, &to->handle);
    MPI_Comm_free(&half);
}

static void make_merged(struct world *w, struct comm *from, struct comm *to)
{
    int high = below(&w->shared, 2); /* the group that comes last */
    for (int k = 0; k < 2; k++) {
        const struct ranks *g = &from->group[k ? high : 1 - high];
        for (int r = 0; r < g->n; r++)
            to->group[0].world[to->group[0].n++] = g->world[r];
    }
    if (from->side >= 0)
        MPI_Intercomm_merge(from->handle, from->side == high, &to->handle);
}

static void make_from_intra(struct world *w, struct comm *from, struct comm *to, int way)
{
    switch (way) {
    case 0:
    case 1:
        make_split(w, from, to);
        break;
    case 2:
        make_create(w, from, to);
        break;
    case 3:
        make_shared(from, to);
        break;
    case 4:
    case 5:
        if (from->shape == CART && chance(&w->shared, 50))
            make_part_of_cart(w, from, to);
        else
            make_cart(w, from, to);
        break;
    case 6:
    case 7:
        make_graph(w, from, to);
        break;
    default:
        make_inter(w, from, to);
    }
}

void step_make_comm(struct world *w)
{
    struct comm *to = free_place(w), *from = pick_comm(w, true);
    int way = below(&w->shared, 14);
    if (!to) {
        step_free_comm(w);
        return;
    }
    memset(to, 0, sizeof *to);
    to->handle = MPI_COMM_NULL;
    if (way >= 11 || (way >= 8 && comm_size(from) < 2))
        make_dup(w, from, to);
    else if (from->shape == INTER)
        make_merged(w, from, to);
    else
        make_from_intra(w, from, to, way);
    to->used = comm_size(to) > 0;
    locate(w, to);
    check(w, to);
    note(w, "make %d from %d: shape %d, %d+%d ranks, I am %d.%d", (int)(to - w->comm),
         (int)(from - w->comm), (int)to->shape, to->group[0].n, to->group[1].n, to->side, to->rank);
}

/* --- freeing one; what is under way on it may be finished later */

static void forget(struct world *w, struct comm *c)
{
#ifdef OPEN_MPI /* crashes in a non-blocking collective of a communicator that has been freed */
    for (int i = 0; i < PENDING; i++)
        if (w->pending[i].comm == c)
            w->pending[i].finish = w->step;
    finish_pending(w, w->step);
#endif
    /* Disconnect waits for all that is under way: only a communicator without may be. */
    bool busy = false;
    for (int i = 0; i < PENDING; i++)
        busy = busy || (w->pending[i].used && w->pending[i].comm == c);
    bool disconnect = chance(&w->shared, 30) && !busy;
    if (c->side >= 0 && disconnect)
        MPI_Comm_disconnect(&c->handle);
    else if (c->side >= 0)
        MPI_Comm_free(&c->handle);
    for (int i = 0; i < PENDING; i++)
        if (w->pending[i].comm == c)
            w->pending[i].comm = NULL;
    c->used = false;
}

void step_free_comm(struct world *w)
{
    int i = 1 + below(&w->shared, COMMS - 1);
    if (!w->comm[i].used)
        return;
    forget(w, &w->comm[i]);
    note(w, "free %d", i);
}

void world_end(struct world *w)
{
    for (int i = 1; i < COMMS; i++)
        if (w->comm[i].used)
            forget(w, &w->comm[i]);
}
