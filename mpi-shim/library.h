/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * library.h - what is done otherwise for one MPI library.  The only place that asks which it is.
 */
#ifndef SHIM_LIBRARY_H
#define SHIM_LIBRARY_H

#include <mpi.h>

/* Before MPI 4.0 there are no sessions; the library may have them all the same. */
#if MPI_VERSION < 4
#ifdef OPEN_MPI
typedef struct ompi_instance_t *MPI_Session;
#else
typedef int MPI_Session;
#endif
#define MPI_SESSION_NULL ((MPI_Session)0) /* none of Open MPI's, but none of a program's either */
#endif

/* For a person.  MPI 5.0's standard interface is any library's. */
#if defined(OPEN_MPI)
#define SHIM_LIBRARY_NAME "Open MPI"
#elif defined(MPICH_VERSION)
#define SHIM_LIBRARY_NAME "MPICH or a relative"
#else
#define SHIM_LIBRARY_NAME "another one"
#endif

/* Open MPI's MPI_Comm_idup is rounds of messages, of which each goes on when all ranks have polled.
 * Who sleeps is not rung between them, so each round takes a slice of sleep.  The blocking function
 * is the same rounds, and with more ranks than cores it yields in them. */
#ifdef OPEN_MPI
enum { SHIM_DUP_IN_ROUNDS = 1 };
#else
enum { SHIM_DUP_IN_ROUNDS = 0 };
#endif

/* See reduce.c. */
#ifdef OPEN_MPI
#define SHIM_IREDUCE_HALVES
#endif

#endif
