/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * construct.c - making communicators, and other functions without a non-blocking form that cannot
 * end before all ranks have arrived.  Their ranks pass an arrival barrier first, with their cores
 * lent, and then call MPI's function.
 */
#include "mpi-shim/arrival/arrival.h"
#include "mpi-shim/arrival/opened_group.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/watch.h"

/* With more ranks than cores Comm_dup takes its non-blocking form, as other collectives do (arrival.c), unless
 * that form is slower. */
int shim_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    struct shim_comm *c = shim_comm(comm);
    struct shim_arrival a;
    if (!shim_managed(c) || !newcomm)
        return SHIM_WATCH_UNMANAGED(c, shim_pmpi.Comm_dup(comm, newcomm));
    if (c->inter || SHIM_DUP_IN_ROUNDS)
        shim_arrival_barrier(&a, c, SHIM_SITE);
    else if (!shim_arrival_begin(&a, c, SHIM_SITE)) {
        MPI_Request request = MPI_REQUEST_NULL; /* as in a generated wrapper */
        int result = shim_pmpi.Comm_idup(comm, newcomm, &request);
        return result == MPI_SUCCESS ? shim_arrival_wait_request(&a, &request) : result;
    }
    int result = shim_pmpi.Comm_dup(comm, newcomm);
    shim_arrival_end(&a);
    return result;
}

int shim_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    struct shim_comm *c = shim_comm(comm);
    struct shim_arrival a;
    if (!shim_managed(c) || !newcomm)
        return SHIM_WATCH_UNMANAGED(c, shim_pmpi.Comm_dup_with_info(comm, info, newcomm));
    shim_arrival_barrier(&a, c, SHIM_SITE);
    int result = shim_pmpi.Comm_dup_with_info(comm, info, newcomm);
    shim_arrival_end(&a);
    return result;
}

/* An arrival barrier of the two leaders, if peer_comm says which rank the other one is. */
static void await_other_leader(MPI_Comm peer_comm, int leader, int tag, const void *call_site)
{
    struct shim_comm *c = shim_comm(peer_comm);
    MPI_Group group;
    int peer = MPI_UNDEFINED;
    if (!c || c->inter || (unsigned)leader >= (unsigned)c->peers || tag < 0)
        return;
    shim_pmpi.Comm_group(peer_comm, &group);
    shim_pmpi.Group_translate_ranks(group, 1, &leader, shim_world.group, &peer);
    shim_pmpi.Group_free(&group);
    if (peer >= 0 && peer != shim_world.rank)
        shim_arrival_barrier_two(peer, tag, call_site);
}

/* Three barriers: of the local group, of the two leaders, and of the local group again.  After the
 * last one both groups have arrived.  A leader of an unmanaged group takes part in the second one
 * too, since the other leader cannot know that it is unmanaged. */
int shim_Intercomm_create(MPI_Comm comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                          int tag, MPI_Comm *newcomm)
{
    struct shim_comm *c = shim_comm(comm);
    if (shim_hooked())
        return SHIM_WATCH(
            NULL, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
            shim_pmpi.Intercomm_create(comm, local_leader, peer_comm, remote_leader, tag, newcomm));
    if (!c || c->inter || !newcomm || (unsigned)local_leader >= (unsigned)c->size)
        return shim_pmpi.Intercomm_create(comm, local_leader, peer_comm, remote_leader, tag,
                                          newcomm);
    struct shim_arrival a;
    if (!c->unmanaged) {
        shim_arrival_barrier(&a, c, SHIM_SITE);
        shim_arrival_end(&a);
    }
    if (c->rank == local_leader)
        await_other_leader(peer_comm, remote_leader, tag, SHIM_SITE);
    if (!c->unmanaged)
        shim_arrival_barrier(&a, c, SHIM_SITE);
    int result =
        shim_pmpi.Intercomm_create(comm, local_leader, peer_comm, remote_leader, tag, newcomm);
    if (!c->unmanaged)
        shim_arrival_end(&a);
    return result;
}

int shim_Comm_disconnect(MPI_Comm *comm)
{
    struct shim_comm *c = comm ? shim_comm(*comm) : NULL;
    if (!shim_hooked() && shim_managed(c) && *comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF) {
        struct shim_arrival a;
        shim_arrival_barrier(&a, c, SHIM_SITE);
        shim_arrival_end(&a);
    }
    shim_forget_comm(comm);
    return SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, shim_pmpi.Comm_disconnect(comm));
}
