/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * entry.h - from an exported MPI_X to what it does now.
 *
 * Every exported function jumps to where its entry points: to the MPI library's own
 * PMPI_X in a process that is not managed (one indirect jump is then all that the shim
 * costs), to our wrapper in one that is.  Nothing here knows an MPI's types, so a
 * library of another ABI is passed through untouched.
 */
#ifndef SHIM_ENTRY_H
#define SHIM_ENTRY_H

#include "shim-numbers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PMPI function: its name, where its address goes, the wrapper and the entry's number
 * (-1: not wrapped).  The last one of shim_symbols has no name. */
struct shim_symbol {
    const char *name;
    void **real;
    void *wrapper;
    int call;
    bool optional;
};
extern const struct shim_symbol shim_symbols[];

/* NULL until the first call resolves it. */
extern void *_Atomic shim_entry[SHIM_CALLS];

/* Find the MPI library and fill the entries.  Returns the function for this call; never
 * NULL: without an MPI library one that says so and returns an error code. */
void *shim_resolve(enum shim_call call);

/* From now on: the wrappers, or the library's own functions. */
void shim_entries_wrap(bool wrap);

static inline void *shim_call(enum shim_call call)
{
    /* acquire: partner is the release store in set_entry (resolve.c) */
    void *function = atomic_load_explicit(&shim_entry[call], memory_order_acquire);
    return __builtin_expect(function != NULL, 1) ? function : shim_resolve(call);
}

#endif
