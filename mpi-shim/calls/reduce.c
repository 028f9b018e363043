/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * reduce.c - the operation for a MPI_Reduce that has become a MPI_Ireduce.
 *
 * Since 4.1 Open MPI's MPI_Ireduce (coll/libnbc) halves the data and puts the halves together
 * again, if there are more than two ranks and at least as many elements as ranks, rounded down to
 * a power of two.  That is many messages in sequence, and with more ranks than cores each message
 * waits for its rank's turn.  For an operation that does not commute MPI_Ireduce uses the binomial
 * tree, which takes fewer messages.  So with more ranks than cores it gets, in place of a
 * predefined operation, one that computes the same and is declared as not commutative.
 *
 * All ranks must make the same choice.  It depends only on the communicator, count, operation and
 * type, which MPI requires to be the same on all ranks.  Types that MPI refuses for an operation
 * must still be refused, so the types that get another operation are listed.
 */
#include "mpi-shim/calls/reduce.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/comm.h"
#include "libinvasive/process.h"

#ifdef SHIM_IREDUCE_HALVES
#include <pthread.h>

enum reduction { SUM, PROD, MAX, MIN, REDUCTIONS };

static MPI_Op predefined_op(enum reduction which)
{
    const MPI_Op ops[REDUCTIONS] = {
        [SUM] = MPI_SUM, [PROD] = MPI_PROD, [MAX] = MPI_MAX, [MIN] = MPI_MIN};
    return ops[which];
}

/* Called by the library, in whichever thread it makes progress. */
static void apply_reduction(enum reduction which, void *in, void *inout, int *count,
                            MPI_Datatype *datatype)
{
    shim_pmpi.Reduce_local(in, inout, *count, *datatype, predefined_op(which));
}

static void reduce_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
    apply_reduction(SUM, in, inout, n, type);
}
static void reduce_prod(void *in, void *inout, int *n, MPI_Datatype *type)
{
    apply_reduction(PROD, in, inout, n, type);
}
static void reduce_max(void *in, void *inout, int *n, MPI_Datatype *type)
{
    apply_reduction(MAX, in, inout, n, type);
}
static void reduce_min(void *in, void *inout, int *n, MPI_Datatype *type)
{
    apply_reduction(MIN, in, inout, n, type);
}

/* Operations that are declared not to commute.  Written by get_ordered_op and shim_reduce_end,
 * under the lock. */
static struct {
    pthread_mutex_t lock;
    bool made[REDUCTIONS];
    MPI_Op op[REDUCTIONS];
} ordered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static MPI_Op get_ordered_op(enum reduction which)
{
    static MPI_User_function *const functions[REDUCTIONS] = {
        [SUM] = reduce_sum, [PROD] = reduce_prod, [MAX] = reduce_max, [MIN] = reduce_min};
    pthread_mutex_lock(&ordered.lock);
    if (!ordered.made[which])
        ordered.made[which] =
            shim_pmpi.Op_create((uintptr_t)functions[which], 0, &ordered.op[which]) == MPI_SUCCESS;
    MPI_Op op = ordered.made[which] ? ordered.op[which] : predefined_op(which);
    pthread_mutex_unlock(&ordered.lock);
    return op;
}

/* Types that each of these operations is defined for. */
static bool is_number(MPI_Datatype datatype)
{
    const MPI_Datatype numbers[] = {MPI_DOUBLE,         MPI_INT,
                                    MPI_FLOAT,          MPI_LONG,
                                    MPI_LONG_LONG,      MPI_UNSIGNED,
                                    MPI_UNSIGNED_LONG,  MPI_SHORT,
                                    MPI_UNSIGNED_SHORT, MPI_UNSIGNED_LONG_LONG,
                                    MPI_INT8_T,         MPI_INT16_T,
                                    MPI_INT32_T,        MPI_INT64_T,
                                    MPI_UINT8_T,        MPI_UINT16_T,
                                    MPI_UINT32_T,       MPI_UINT64_T,
                                    MPI_SIGNED_CHAR,    MPI_UNSIGNED_CHAR,
                                    MPI_AINT,           MPI_OFFSET,
                                    MPI_LONG_DOUBLE,    MPI_INTEGER,
                                    MPI_REAL,           MPI_DOUBLE_PRECISION};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (datatype == numbers[i])
            return true;
    return false;
}

/* Does the library take the tree by itself? */
static bool library_takes_tree(const struct shim_comm *c, MPI_Count count)
{
    return c->size <= 2 || count < 1 << (31 - __builtin_clz((unsigned)c->size));
}

MPI_Op shim_reduce_op(const struct shim_comm *c, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    if (!inv_process.anonymous || !c->line || library_takes_tree(c, count) || !is_number(datatype))
        return op;
    for (enum reduction which = 0; which < REDUCTIONS; which++)
        if (op == predefined_op(which))
            return get_ordered_op(which);
    return op;
}

void shim_reduce_end(void)
{
    pthread_mutex_lock(&ordered.lock);
    for (enum reduction which = 0; which < REDUCTIONS; which++) {
        if (ordered.made[which])
            shim_pmpi.Op_free(&ordered.op[which]);
        ordered.made[which] = false;
    }
    pthread_mutex_unlock(&ordered.lock);
}

#else
MPI_Op shim_reduce_op(const struct shim_comm *c, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    (void)c, (void)count, (void)datatype;
    return op;
}

void shim_reduce_end(void) {}
#endif
