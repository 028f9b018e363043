/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * site_stats.h - call-site statistics: where the program calls MPI, and how long it waits there.
 * The shim writes them into the process's record for `invade --report` (libinvasive/table/record.h).
 *
 * The guard of a function that may wait counts the call.  The thread's waits until its next call
 * belong to that call site.  Without --report and --trace this costs a load and a branch.  With
 * INVASIVE_REPORT=0 only call sites and their names are recorded, and CPU time is not read.
 */
#ifndef SHIM_SITE_STATS_H
#define SHIM_SITE_STATS_H

#include "mpi-shim/dispatch/entry.h"
#include "mpi-shim/measure/iteration.h"
#include "libinvasive/record/record.h"
#include "libinvasive/process.h"

/* The program has called function `call` from `address`. */
void shim_site_stats_count_call(enum shim_call call, const void *address);

static inline void shim_called(enum shim_call call, const void *address)
{
    if (inv_has_sites())
        shim_site_stats_count_call(call, address);
}

/* --- these do nothing without a record, except that sites are recorded without one */

/* Called by the main thread at the end of set-up.  `job` is the same in all processes that share
 * MPI_COMM_WORLD. */
void shim_site_stats_start(uint64_t job);
/* Both copy the `count` classes of iterations into the record and set the time until which the
 * record is complete to now; so they are called after the slot's counters were written.  _stop: for
 * the last time. */
void shim_site_stats_publish(const struct shim_iteration_class *classes, unsigned count);
void shim_site_stats_stop(const struct shim_iteration_class *classes, unsigned count);

/* Steps of a wait of the calling thread that began at `start` (ticks): it lasts for some
 * microseconds; the thread falls asleep; it has woken up; the wait is over.  Only the last call is
 * needed; it adds the whole wait. */
void shim_site_stats_wait_lasts(uint64_t start);
void shim_site_stats_wait_sleeps(uint64_t start);
void shim_site_stats_wait_woke(void);
void shim_site_stats_add_wait(uint64_t start, uint64_t end, bool slept);
/* For a trace: independent of the record, and without short waits. */
void shim_site_stats_trace_wait(uint64_t start, uint64_t end, bool slept);
static inline void shim_site_stats_waited(uint64_t start, uint64_t end, bool slept)
{
    if (inv_is_recorded())
        shim_site_stats_add_wait(start, end, slept);
    if (inv_traced())
        shim_site_stats_trace_wait(start, end, slept);
}

/* The site of the calling thread's latest call.  Set it around shim_site_stats_waited() when the
 * wait belongs to an earlier call. */
unsigned shim_site_stats_current(void);
void shim_site_stats_set_current(unsigned here);

#endif
