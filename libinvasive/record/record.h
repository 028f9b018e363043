/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * record.h - this process's record for `invade --report` (table/record.h): its beginning and its end.
 */
#ifndef INV_MEMBER_RECORD_H
#define INV_MEMBER_RECORD_H

#include "libinvasive/table/record.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct inv_controls; /* control_point.c */

/* Writer: record.c. */
struct inv_recording {
    /* Our record, where INVASIVE_REPORT asks for one; else NULL.  release/acquire; partner: the
     * end of inv_join.  NULL again when the slot is not ours any more */
    struct inv_record *_Atomic record;
    /* The same; also where it asks only for the names of call sites, for a trace */
    struct inv_record *_Atomic sites;
    /* What inv_control_point has found out; NULL: it has not been called.  Writer: control_point.c.
     * release/acquire; partner: another thread that calls it */
    struct inv_controls *_Atomic controls;
    _Atomic bool refused; /* a call of it has been refused, which stderr has told */
    pid_t owner; /* whose record it is; written when it begins, by the thread that joins, before `record` */
};
extern struct inv_recording inv_recording;

/* Our record; and the same also where it asks only for the names of call sites.  NULL: there is none, or
 * none any more, as in the child of a fork and after the process has left. */
static inline struct inv_record *inv_own_record(void)
{
    return atomic_load_explicit(&inv_recording.record, memory_order_acquire);
}
static inline struct inv_record *inv_own_sites(void)
{
    return atomic_load_explicit(&inv_recording.sites, memory_order_acquire);
}

/* Is inv_own_record, or inv_own_sites, not NULL?  Relaxed: a hint; each use loads the address
 * again.  For hot paths. */
static inline bool inv_is_recorded(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_recording.record, memory_order_relaxed) != NULL, 0);
}
static inline bool inv_has_sites(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_recording.sites, memory_order_relaxed) != NULL, 0);
}

/* Begins our record, if INVASIVE_REPORT asks for one; inv_join calls it. */
void inv_record_begin(void);
/* The process has no record any more, since the slot may become another process's. */
void inv_record_end(void);
/* The reported time begins with _restart, at the end of MPI_Init, and ends with _stop, at the begin
 * of MPI_Finalize.  Without MPI it is from joining to the end of the process. */
void inv_record_restart(void);
void inv_record_stop(void);
/* Brings the record's CPU time up to date, if there is a record. */
void inv_record_publish(void);
/* Writes the name of a module as the dynamic linker has it ("": the program) to `to`, a buffer of
 * INV_MODULE_BYTES bytes.  Of a longer name only the end.  Thread safe. */
void inv_record_name_module(char *to, const char *name);

/* Does the `invade` that wants a report run on this node?  False where no report is wanted. */
bool inv_report_is_here(void);

#endif
