/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * others.h - other threads of the process, for a thread that waits in a loop of tests.
 */
#ifndef INV_OTHERS_H
#define INV_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

/* The looks of one thread. */
struct inv_others {
    uint64_t cpu_ns; /* CPU time of all others when they were last seen to have run */
    uint64_t ran_ns; /* when that was; 0: never */
    uint64_t own_ns; /* the caller's CPU time then */
    uint64_t spent_ns; /* what the caller has used since */
};
/* How long no other thread of the program has run, as far as the looks tell; UINT64_MAX: none ever
 * has.  Only the caller's CPU time tells whether one could have run in that time: on a busy machine
 * both may have waited for a processor.  Two or three system calls. */
uint64_t inv_others_quiet_ns(struct inv_others *o);

/* The calling thread waits in a loop of tests of MPI, the latest of which has failed: true until
 * the thread tests with success, waits in another way, begins a region, or has not tested for so
 * long that it computes.  Read by the OpenMP runtime where a lock is released.  inv_polls_until, in
 * ticks: 0 where that is false; written by its thread, in the MPI shim and at the begin of a
 * region. */
extern __thread uint64_t inv_polls_until __attribute__((tls_model("initial-exec")));
bool inv_polls(void);

#endif
