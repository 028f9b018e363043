/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * trace.h - writes events into the ring of this process (trace_ring.h).  Called where a core's word
 * changes (core.c), and by what announces or waits.
 */
#ifndef INV_TRACE_H
#define INV_TRACE_H

#include "libinvasive/table/table.h"

/* The ring that this process writes to, INV_TRACE_NONE before it is a member.  Writers: member/join.c,
 * and rmd, which has a ring of its own.  Relaxed. */
extern _Atomic unsigned inv_trace_ring;

/* The reader sleeps for a tenth of a second between two looks: not now.  Thread safe. */
void inv_trace_wake_reader(struct inv_table *t);

/* Write an event that is nothing but itself.  Only while the table's `tracing` is set. */
void inv_trace_write(struct inv_table *t, enum inv_trace_kind kind, uint64_t body);

/* What a cell says of a change that is to come.  event NULL: there was no room, or no ring. */
struct inv_trace_intent {
    struct inv_trace_event *event;
    uint64_t head; /* by which the cell is known to be still this one's */
};

/*
 * inv_trace_intend - a core's word is about to change.
 * inv_trace_settle - and has, or has not.  Nothing, where the reader did not wait for that.
 * inv_trace_late   - it has, while tracing began.
 */
struct inv_trace_intent inv_trace_intend(struct inv_table *t, unsigned core, uint64_t old,
                                         uint64_t next);
void inv_trace_settle(struct inv_trace_intent intent, bool happened);
void inv_trace_late(struct inv_table *t, unsigned core, uint64_t old, uint64_t next);

#endif
