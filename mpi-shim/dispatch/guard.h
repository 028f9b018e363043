/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * guard.h - is this thread inside a wrapper or not?
 *
 * MPI libraries call PMPI functions themselves: input and output does, and some components of Open
 * MPI.  They also call functions of the program: operations, attribute functions, error handlers.
 * An MPI call from inside either of them passes straight through.  So every entry goes through a
 * guard, which generate.py makes.  It notes its frame while the wrapper is at work, and a call
 * whose frame is below that on the stack is inside.  The guard keeps an address, not a flag, since
 * an error handler that leaves by longjmp would not clear a flag.
 *
 * Code that runs other work of the program inside a wait (tasks.c) clears shim_thread.frame for
 * that time and restores it afterwards.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include "mpi-shim/dispatch/entry.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"

/* Here and in the other headers: all users are in one library, so no access goes through the global
 * offset table. */
#pragma GCC visibility push(hidden)

/* For functions on the fast path (fast_path.h). */
#define SHIM_INLINE static inline __attribute__((always_inline))

struct shim_comm;
/* State of the calling thread, which alone writes it. */
struct shim_thread {
    uintptr_t frame;  /* of the guard at work; 0 none */
    const void *site; /* the program's return address */
    /* the communicator that this thread used last; valid while no communicator is dropped */
    struct shim_comm *comm;
    MPI_Comm comm_handle;
    unsigned comm_drops;
    /* the same, or 0: this communicator has no fast path (fast_path.h) */
    unsigned fast_path_drops;
    bool measured; /* it called MPI_Init: the thread that workload.c measures */
    bool testing;  /* it is in a test, which must not delay other threads of the program */
    /* While it sleeps in the wait engine, which sets `listening`: has something arrived?  The hook
     * (watch.c) sets `heard`. */
    bool listening, heard;
    /* The library itself yields where nothing has arrived, as the latest poll outside of watched
     * calls has said. */
    bool mpi_yields;
};
extern __thread struct shim_thread shim_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* In a Fortran program the return address is in MPI's library; the program's is in the
 * dispatcher's shim_caller then (fortran.c). */
static inline const void *shim_program_site(const void *return_address)
{
#ifdef SHIM_FORTRAN
    char *thread = __builtin_thread_pointer();
    const void **caller = (void *)(thread + shim_dispatcher.caller_offset);
    if (__builtin_expect(*caller != NULL, 0)) {
        return_address = *caller;
        *caller = NULL;
    }
#endif
    return return_address;
}

#define SHIM_FRAME ((uintptr_t)__builtin_frame_address(0))
#define SHIM_INSIDE() (__builtin_expect(SHIM_FRAME < shim_thread.frame, 0))
#define SHIM_ENTER() \
    (shim_thread.frame = SHIM_FRAME,                                                               \
     shim_thread.site = shim_program_site(__builtin_return_address(0)))
#define SHIM_LEAVE() (shim_thread.frame = 0)
/* The place in the program of the call that this thread is in. */
#define SHIM_SITE (shim_thread.site)

#pragma GCC visibility pop
#endif
