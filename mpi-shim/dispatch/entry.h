/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * entry.h - from an exported MPI_X or PMPI_X to the function that it leads to now, and the
 * interface between the two halves of the shim.
 *
 * The dispatcher (resolve.c, shim-entries.c) is preloaded.  It exports MPI_X and PMPI_X, each of
 * which jumps to where its entry points: to the MPI library's own function in a process that is not
 * managed (a load, a test and an indirect jump are then all that the shim costs), to the wrapper in
 * one that is.  It passes machine words and knows no MPI's types.
 *
 * The wrappers are in a variant, a library for each binary interface, compiled from one source with
 * that interface's mpi.h.  The dispatcher loads the one that fits the MPI library which it finds at
 * the first MPI call.
 */
#ifndef SHIM_ENTRY_H
#define SHIM_ENTRY_H

#include "mpi-shim/dispatch/hook.h"
#include "mpi-shim/gen/shim-numbers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PMPI function that a variant calls.  The last element of a table has no name. */
struct shim_symbol {
    const char *name;
    void **real;   /* where the dispatcher stores the function's address */
    void *guard;   /* that replaces it in a managed process; NULL: it is not wrapped */
    int call;      /* the entry's number; -1: it is not wrapped */
    bool optional; /* the library need not have it */
};

extern const struct shim_symbol shim_symbols[];

/* What a variant shows, by the name shim_variant. */
struct shim_variant {
    const struct shim_symbol *symbols;
    /* Where the dispatcher stores the function that switches the entries to the guards, and
     * back. */
    void (**wrap)(bool wrap);
    /* Where the dispatcher stores hook_set (hook.c). */
    void (**hook)(hook_polled *polled, unsigned every_polls);
    /* The offset of shim_caller from the thread pointer.  It is the same in all threads, since the
     * dispatcher was loaded before they began. */
    ptrdiff_t *caller_offset;
};

/* --- in the dispatcher */

enum shim_level { SHIM_MPI, SHIM_PMPI, SHIM_LEVELS };

enum { SHIM_NAME_BYTES = 48 }; /* the longest name, of a Fortran function, has 39 characters */

/* Where the entries jump to; NULL: not resolved yet.  Written by set_entry (resolve.c). */
extern void *_Atomic shim_entry[SHIM_LEVELS][SHIM_CALLS];
/* "PMPI_Send", and so on. */
extern const char shim_names[SHIM_CALLS][SHIM_NAME_BYTES];

/* Finds the MPI library and fills the entries.  Returns the function for this call, which the code
 * at `caller` has made; never NULL: if no library has the function the process ends, as it does
 * when the dynamic linker finds no symbol.  (names.c: few such calls get here.) */
void *shim_resolve(enum shim_level level, enum shim_call call, const void *caller);

/* Fortran functions have entries of their own on processors for which fortran.c has the code. */
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__ELF__)
#define SHIM_FORTRAN
extern void *_Atomic shim_fortran_entry[];
extern const char shim_fortran_names[][SHIM_NAME_BYTES];
/* Where this thread's latest Fortran call of MPI came from; NULL once a guard has taken it. */
extern __thread const void *shim_caller;
/* As shim_resolve, for the Fortran function with this number in shim_fortran_names. */
void *shim_resolve_fortran(unsigned number, const void *caller);
#endif

/* The function that an entry leads to now; NULL: it is to be resolved. */
static inline void *shim_target(enum shim_level level, enum shim_call call)
{
    /* acquire: partner is the release store in set_entry (resolve.c) */
    return atomic_load_explicit(&shim_entry[level][call], memory_order_acquire);
}

#endif
