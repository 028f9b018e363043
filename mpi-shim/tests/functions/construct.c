/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * construct.c - making communicators of every kind, intercommunicators in every collective, and
 * processes that are started by the program.  With an argument: I am such a process.
 */
#include "expect.h"

static int sum_of(MPI_Comm comm)
{
    int sum = -1;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

static int sum_of_ranks(void) { return world_size * (world_size - 1) / 2; }

static void check_all(MPI_Comm *comm, const char *what)
{
    expect(*comm != MPI_COMM_NULL && sum_of(*comm) == sum_of_ranks(), what);
    MPI_Comm_free(comm);
}

static int copies, deletes;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)key;
    (void)extra;
    int size;
    MPI_Comm_size(comm, &size); /* a call of MPI from inside */
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void duplicates(void)
{
    MPI_Comm comm, with_attribute;
    MPI_Request r;
    int key, flag;
    void *value;
    MPI_Comm_create_keyval(copy, forget, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &with_attribute);
    MPI_Comm_set_attr(with_attribute, key, &copies);
    MPI_Comm_dup(with_attribute, &comm);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    expect(flag && value == &copies && copies == 1, "the copy function of an attribute");
    check_all(&comm, "Comm_dup");
    MPI_Comm_dup_with_info(with_attribute, MPI_INFO_NULL, &comm);
    check_all(&comm, "Comm_dup_with_info");
    MPI_Comm_idup(with_attribute, &comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    check_all(&comm, "Comm_idup");
#if MPI_VERSION >= 4
    MPI_Comm_idup_with_info(with_attribute, MPI_INFO_NULL, &comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    check_all(&comm, "Comm_idup_with_info");
#endif
    MPI_Comm_free(&with_attribute);
    note("copied %d, deleted %d\n", copies, deletes);
    MPI_Comm_free_keyval(&key);
}

static void parts(void)
{
    MPI_Comm comm;
    MPI_Group world, even;
    int ranks[MOST_RANKS], n = 0, sum = 0;
    for (int r = 0; r < world_size; r += 2) {
        ranks[n++] = r;
        sum += r;
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, ranks, &even);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2 ? MPI_UNDEFINED : 3, -world_rank, &comm);
    expect(world_rank % 2 ? comm == MPI_COMM_NULL : sum_of(comm) == sum, "Comm_split");
    if (comm != MPI_COMM_NULL)
        MPI_Comm_disconnect(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    check_all(&comm, "Comm_split_type");
    MPI_Comm_create(MPI_COMM_WORLD, even, &comm);
    expect(world_rank % 2 ? comm == MPI_COMM_NULL : sum_of(comm) == sum, "Comm_create");
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
    expect(comm == MPI_COMM_NULL, "Comm_create of nothing");
    if (world_rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, even, 5, &comm);
        expect(sum_of(comm) == sum, "Comm_create_group");
        MPI_Comm_free(&comm);
#if MPI_VERSION >= 4
        MPI_Comm_create_from_group(even, "construct", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        expect(sum_of(comm) == sum, "Comm_create_from_group");
        MPI_Comm_free(&comm);
#endif
    }
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

/* A grid whose neighbours on both sides are one rank: what goes left comes from the right. */
static void repeated_neighbour(void)
{
    int dims[2] = {world_size / 2, 2}, periods[2] = {0, 1}, out[4], in[4], lower, upper;
    MPI_Comm grid;
    if (world_size % 2)
        return;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 1, 1, &lower, &upper);
    for (int i = 0; i < 4; i++)
        out[i] = 10 * world_rank + i;
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
    expect(in[2] == 10 * lower + 3 && in[3] == 10 * upper + 2, "twin neighbours");
    MPI_Comm_free(&grid);
}

static void topologies(void)
{
    MPI_Comm cart, comm;
    int dims[2] = {world_size, 1}, periods[2] = {1, 0}, keep[2] = {1, 0};
    int next = (world_rank + 1) % world_size, previous = (world_rank + world_size - 1) % world_size;
    int indices[MOST_RANKS], edges[MOST_RANKS], one = 1, got = -1;
    for (int r = 0; r < world_size; r++) {
        indices[r] = r + 1;
        edges[r] = (r + 1) % world_size;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Cart_sub(cart, keep, &comm);
    check_all(&comm, "Cart_sub");
    check_all(&cart, "Cart_create");
    MPI_Graph_create(MPI_COMM_WORLD, world_size, indices, edges, 0, &comm);
    check_all(&comm, "Graph_create");
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &world_rank, &one, &next, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &comm);
    MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, &got, 1, MPI_INT, comm);
    expect(got == previous, "Dist_graph_create");
    MPI_Comm_free(&comm);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    got = -1;
    MPI_Neighbor_alltoall(&world_rank, 1, MPI_INT, &got, 1, MPI_INT, comm);
    expect(got == previous, "Dist_graph_create_adjacent");
    MPI_Comm_free(&comm);
}

/* The other group's value in every kind of collective; its ranks are even or odd ones. */
static void collectives_between(MPI_Comm inter, int odd)
{
    int rank, mine, theirs, sum = 0, other = 0, counts[MOST_RANKS], displs[MOST_RANKS];
    int in[MOST_RANKS], out[MOST_RANKS], bytes[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    for (int r = 0; r < theirs; r++)
        other += 2 * r + !odd;
    for (int r = 0; r < MOST_RANKS; r++) {
        out[r] = world_rank;
        counts[r] = 1;
        displs[r] = r;
        bytes[r] = r * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    MPI_Barrier(inter);
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    expect(sum == other, "allreduce between groups");
#define FROM_OTHERS(call)                                                                          \
    do {                                                                                           \
        memset(in, -1, sizeof in);                                                                 \
        call;                                                                                      \
        int good = 1;                                                                              \
        for (int r = 0; r < theirs; r++)                                                           \
            good = good && in[r] == 2 * r + !odd;                                                  \
        expect(good, #call);                                                                       \
    } while (0)
    FROM_OTHERS(MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, inter));
    FROM_OTHERS(MPI_Allgatherv(out, 1, MPI_INT, in, counts, displs, MPI_INT, inter));
    FROM_OTHERS(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter));
    FROM_OTHERS(MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, inter));
    FROM_OTHERS(MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, inter));
    /* Rank 0 of the odd ones is the root. */
    int root = !odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, value = odd ? world_rank : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    expect(odd || value == 1, "bcast between groups");
    /* And the last one of them: MPICH 4.0's MPI_Ibcast cannot do that, so it must not be used. */
    int last = !odd ? theirs - 1 : rank == mine - 1 ? MPI_ROOT : MPI_PROC_NULL;
    value = odd ? world_rank : -1;
    MPI_Bcast(&value, 1, MPI_INT, last, inter);
    expect(odd || value == 2 * theirs - 1, "bcast between groups, from the last rank");
    sum = -1;
    MPI_Reduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    expect(root != MPI_ROOT || sum == other, "reduce between groups");
    memset(in, -1, sizeof in);
    MPI_Gather(&world_rank, 1, MPI_INT, in, 1, MPI_INT, root, inter);
    expect(root != MPI_ROOT || in[theirs - 1] == 2 * (theirs - 1), "gather between groups");
    memset(in, -1, sizeof in);
    MPI_Gatherv(&world_rank, 1, MPI_INT, in, counts, displs, MPI_INT, root, inter);
    expect(root != MPI_ROOT || in[theirs - 1] == 2 * (theirs - 1), "gatherv between groups");
    for (int r = 0; r < MOST_RANKS; r++)
        out[r] = 50 + r;
    MPI_Scatter(out, 1, MPI_INT, &value, 1, MPI_INT, root, inter);
    expect(odd || value == 50 + rank, "scatter between groups");
    MPI_Scatterv(out, counts, displs, MPI_INT, &value, 1, MPI_INT, root, inter);
    expect(odd || value == 50 + rank, "scatterv between groups");
    for (int r = 0; r < MOST_RANKS; r++)
        counts[r] = 0;
    counts[0] = mine * theirs; /* the same in total on both sides */
    int *many = malloc((size_t)counts[0] * sizeof *many);
    int *got = calloc((size_t)counts[0], sizeof *got);
    for (int i = 0; i < mine * theirs; i++)
        many[i] = 1;
    MPI_Reduce_scatter(many, got, counts, MPI_INT, MPI_SUM, inter);
    expect(rank > 0 || got[0] == theirs, "reduce_scatter between groups");
    MPI_Reduce_scatter_block(many, got, theirs, MPI_INT, MPI_SUM, inter);
    expect(got[0] == theirs, "reduce_scatter_block between groups");
    free(many);
    free(got);
}

static void between_groups(void)
{
    MPI_Comm half, inter, other, merged;
    int odd = world_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, odd, 0, &half);
    if (world_size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !odd, 50, &inter);
        collectives_between(inter, odd);
        MPI_Comm_dup(inter, &other);
        MPI_Barrier(other);
        MPI_Comm_free(&other);
        MPI_Comm_split(inter, 0, 0, &other);
        MPI_Barrier(other);
        MPI_Comm_disconnect(&other);
        MPI_Intercomm_merge(inter, odd, &merged);
        check_all(&merged, "Intercomm_merge");
        MPI_Comm_free(&inter);
    }
    MPI_Comm_free(&half);
}

#if MPI_VERSION >= 4
static void sessions(void)
{
    MPI_Session session;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS)
        MPI_Session_finalize(&session);
}
#endif

/* Both sides talk over the merged communicator, then part. */
static void talk(MPI_Comm *inter, int high, int total)
{
    MPI_Comm merged;
    int one = 1, sum = 0;
    MPI_Intercomm_merge(*inter, high, &merged);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
    expect(sum == total, "all ranks, parents and children");
    MPI_Bcast(&sum, 1, MPI_INT, 0, merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(inter);
}

static void children(char *self)
{
    MPI_Comm inter;
    int codes[4];
    char *child[2] = {"child", NULL}, *commands[2] = {self, self}, **args[2] = {child, child};
    int counts[2] = {1, 1};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm_spawn(self, child, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    talk(&inter, 0, world_size + 2);
    MPI_Comm_spawn_multiple(2, commands, args, counts, infos, 0, MPI_COMM_WORLD, &inter, codes);
    talk(&inter, 0, world_size + 2);
}

/* Two halves of the job meet by a port. */
static void ports(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    int odd = world_rank % 2;
    if (world_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, odd, 0, &half);
    if (world_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (odd)
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    talk(&inter, odd, world_size);
    if (world_rank == 0)
        MPI_Close_port(port);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        int remote;
        MPI_Comm_remote_size(parent, &remote);
        talk(&parent, 1, world_size + remote);
        free(log_text);
        MPI_Finalize();
        return wrong > 0;
    }
    duplicates();
    parts();
    topologies();
    repeated_neighbour();
    between_groups();
#if MPI_VERSION >= 4
    sessions();
#endif
    if (argc > 1 && strcmp(argv[1], "spawn") == 0)
        children(argv[0]);
    if (argc > 1 && strcmp(argv[1], "port") == 0)
        ports();
    return finish();
}
