/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * account.h - where the program calls MPI, and how long it waits there: what the shim writes
 * into the process's record for `invade --report` (libinvasive/record.h).
 *
 * The guard of a function that may wait says that it has been called: the call is counted, and
 * the thread's waits until the next one belong to it.  Without --report and --trace that is a load
 * and a branch.  INVASIVE_REPORT=0: only sites and their names, and nothing asks for CPU time.
 */
#ifndef SHIM_ACCOUNT_H
#define SHIM_ACCOUNT_H

#include "entry.h"
#include "process.h"

/* The program has called this function from there. */
void shim_account_called(enum shim_call call, const void *address);

/* There is a record; there are at least sites.  Relaxed: a hint; whoever uses them loads the address
 * again. */
static inline bool shim_recorded(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_process.record, memory_order_relaxed) != NULL, 0);
}
static inline bool shim_has_sites(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_process.sites, memory_order_relaxed) != NULL, 0);
}
static inline void shim_called(enum shim_call call, const void *address)
{
    if (shim_has_sites())
        shim_account_called(call, address);
}

/* The same number for a call site in all processes that run the same program: relative to
 * where the program, or for sites in libraries the shim, has been loaded. */
extern struct shim_places {
    uintptr_t program, program_bytes, shim;
} shim_places;

static inline uintptr_t shim_site_place(const void *call_site)
{
    uintptr_t a = (uintptr_t)call_site, in_program = a - shim_places.program;
    return in_program < shim_places.program_bytes ? in_program : a - shim_places.shim;
}

/* --- all of these do nothing where there is no record, but for sites */

/* The calling thread is the main one: MPI_Init has ended.  job: the same in all processes that
 * share MPI_COMM_WORLD.  Fills shim_places, in any case. */
void shim_account_start(uint64_t job);
void shim_account_stop(void);
/* After the slot's counters: the record says now what they say. */
void shim_account_publish(void);

/* A wait of the calling thread that began at `start` (ticks) goes on for some microseconds; it
 * falls asleep; it has woken up; it is over, and all of it is booked.  Only the last is needed. */
void shim_account_lasts(uint64_t start);
void shim_account_sleeps(uint64_t start);
void shim_account_woke(void);
void shim_account_wait(uint64_t start, uint64_t end, bool slept);
/* For a trace, which has waits also where there is no record, but not short ones. */
void shim_account_trace(uint64_t start, uint64_t end, bool slept);
static inline void shim_account_waited(uint64_t start, uint64_t end, bool slept)
{
    if (shim_recorded())
        shim_account_wait(start, end, slept);
    if (inv_traced())
        shim_account_trace(start, end, slept);
}

/* The site of the calling thread, for waits that are booked when it is elsewhere already. */
unsigned shim_account_here(void);
void shim_account_return_to(unsigned here);

#endif
