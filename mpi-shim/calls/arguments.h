/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * arguments.h - are the arguments of a call valid?  Arguments with errors are left to the blocking
 * function, so that MPI's message has the name of that function.
 */
#ifndef SHIM_ARGUMENTS_H
#define SHIM_ARGUMENTS_H

#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

static inline bool shim_root_valid(const struct shim_comm *c, int root)
{
    return c->inter || (unsigned)root < (unsigned)c->size;
}
/* May the buffer's address be NULL with this type? */
bool shim_null_buffer_valid(MPI_Datatype datatype);
static inline bool shim_data_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int tag)
{
    return c && count >= 0 && datatype != MPI_DATATYPE_NULL && tag >= 0 &&
           tag <= shim_world.tag_ub && (buf || count == 0 || shim_null_buffer_valid(datatype));
}
static inline bool shim_send_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int dest, int tag)
{
    return shim_data_valid(c, buf, count, datatype, tag) && (unsigned)dest < (unsigned)c->peers;
}
static inline bool shim_recv_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int source, int tag)
{
    return shim_data_valid(c, buf, count, datatype, tag == MPI_ANY_TAG ? 0 : tag) &&
           ((unsigned)source < (unsigned)c->peers || source == MPI_ANY_SOURCE);
}
static inline bool shim_matched_valid(const MPI_Message *message, MPI_Count count,
                                      MPI_Datatype datatype)
{
    return message && *message != MPI_MESSAGE_NULL && *message != MPI_MESSAGE_NO_PROC &&
           count >= 0 && datatype != MPI_DATATYPE_NULL;
}

#pragma GCC visibility pop
#endif
