/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * others.h - other threads of the process, for a thread that waits in a loop of tests.
 */
#ifndef INV_OTHERS_H
#define INV_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

/* What one thread knows of the others.  Begins as zeroes.  Writer: inv_others_quiet_ns, in that
 * thread. */
struct inv_others {
    uint64_t cpu_ns; /* CPU time of all others in the last call that found that they had run */
    uint64_t ran_ns; /* CLOCK_MONOTONIC of that call; 0: there was none */
    uint64_t own_ns; /* CPU time of the caller at that call */
    uint64_t spent_ns; /* CPU time that the caller has used since */
};
/* For how long (ns) no other thread of the program has run, as far as the calls tell; UINT64_MAX:
 * none ever has.  On a busy machine the caller and the others may all have waited for a processor.
 * So compare spent_ns, the caller's CPU time in that time, too.  Two or three system calls. */
uint64_t inv_others_quiet_ns(struct inv_others *o);

/* Threads of the process, the initial one included to the end of the process; 0: unknown.  A system call. */
unsigned inv_threads_now(void);

/* Until when the calling thread counts as one that waits in a loop of MPI tests, in ticks; 0: it
 * does not.  Written by its thread: in the MPI shim, at the begin of a region, and by inv_polls
 * when the time has passed. */
extern __thread uint64_t inv_polls_until __attribute__((tls_model("initial-exec")));
/* Does the calling thread wait in a loop of tests, the latest of which has failed?  No longer when
 * a test succeeds, when the thread waits in another way or begins a region, or when it has not
 * tested for so long that it must be computing.  The OpenMP runtime asks where a lock is
 * released. */
bool inv_polls(void);

#endif
