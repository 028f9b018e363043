/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * library.h - what differs between MPI libraries.
 */
#ifndef SHIM_LIBRARY_H
#define SHIM_LIBRARY_H

#include <mpi.h>
#include <stdbool.h>

/* mpi.h has no sessions before MPI 4.0, but the library of the process may have them. */
#if MPI_VERSION < 4
#ifdef OPEN_MPI
typedef struct ompi_instance_t *MPI_Session;
#else
typedef int MPI_Session;
#endif
#define MPI_SESSION_NULL ((MPI_Session)0) /* no session has this value, in any library */
#endif

/* For messages to users.  The standard interface of MPI 5.0 does not tell the library. */
#if defined(OPEN_MPI)
#define SHIM_LIBRARY_NAME "Open MPI"
#elif defined(MPICH_VERSION)
#define SHIM_LIBRARY_NAME "MPICH or a relative"
#else
#define SHIM_LIBRARY_NAME "another one"
#endif

/* Open MPI's MPI_Comm_idup takes several rounds of messages.  A round ends when all ranks have
 * polled, and sleeping ranks are not rung for it, so each round takes a slice of sleep.  The
 * blocking function has the same rounds, but with more ranks than cores it yields in them. */
#ifdef OPEN_MPI
enum { SHIM_DUP_IN_ROUNDS = 1 };
#else
enum { SHIM_DUP_IN_ROUNDS = 0 };
#endif

/* See reduce.c. */
#ifdef OPEN_MPI
#define SHIM_IREDUCE_HALVES
#endif

#pragma GCC visibility push(hidden)

/* Is the library of the process Open MPI?  Asked where libraries of one binary interface differ. */
bool shim_is_open_mpi(void);

#pragma GCC visibility pop
#endif
