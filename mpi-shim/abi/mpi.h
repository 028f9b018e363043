/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * mpi.h - the standard binary interface of MPI 5.0 (the standard's chapter "Application
 * Binary Interface"), as far as the shim needs it: types, the status, constants.  No
 * prototypes: the shim finds every function by its name.  testsuite/mpi/loading/test_abi.py
 * compares it with the mpi.h of a library that has the interface.
 *
 * Handles are pointers to opaque objects; predefined ones are small numbers, given
 * out by kind: operations from 0x20, datatypes from 0x200, other objects from 0x100.
 */
#ifndef SHIM_ABI_MPI_H
#define SHIM_ABI_MPI_H

#include <stdint.h>

#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

#define SHIM_ABI_HANDLE(type) typedef struct MPI_ABI_##type *MPI_##type
SHIM_ABI_HANDLE(Comm);
SHIM_ABI_HANDLE(Datatype);
SHIM_ABI_HANDLE(Errhandler);
SHIM_ABI_HANDLE(File);
SHIM_ABI_HANDLE(Group);
SHIM_ABI_HANDLE(Info);
SHIM_ABI_HANDLE(Message);
SHIM_ABI_HANDLE(Op);
SHIM_ABI_HANDLE(Request);
SHIM_ABI_HANDLE(Session);
SHIM_ABI_HANDLE(Win);

/* Operations */
#define MPI_OP_NULL ((MPI_Op)0x20)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_MIN ((MPI_Op)0x22)
#define MPI_MAX ((MPI_Op)0x23)

/* Other objects, each kind's null handle first */
#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_GROUP_NULL ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY ((MPI_Group)0x109)
#define MPI_WIN_NULL ((MPI_Win)0x110)
#define MPI_FILE_NULL ((MPI_File)0x118)
#define MPI_SESSION_NULL ((MPI_Session)0x120)
#define MPI_MESSAGE_NULL ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x129)
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x141)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

/* Datatypes */
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x200)
#define MPI_PACKED ((MPI_Datatype)0x207)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_LONG ((MPI_Datatype)0x20a)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_INT64_T ((MPI_Datatype)0x258)
#define MPI_UINT64_T ((MPI_Datatype)0x259)

/* Addresses that stand for something else */
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_UNWEIGHTED ((int *)10)
#define MPI_WEIGHTS_EMPTY ((int *)11)

/* Numbers */
#define MPI_SUCCESS 0
#define MPI_ERR_PENDING 18
#define MPI_ERR_IN_STATUS 19
#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-2)
#define MPI_PROC_NULL (-3)
#define MPI_ROOT (-4)
#define MPI_UNDEFINED (-32766)
#define MPI_CART 211
#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_FUNNELED 1024
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE 4096
#define MPI_COMM_TYPE_SHARED 221
#define MPI_COMBINER_NAMED 101
#define MPI_TAG_UB 501
#define MPI_MODE_NOCHECK 1024
#define MPI_LOCK_EXCLUSIVE 301
#define MPI_LOCK_SHARED 302
#define MPI_MAX_LIBRARY_VERSION_STRING 8192

#endif
