/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * trace.h - writes events into the ring of this process (trace_ring.h).  Called where a core's word
 * changes (core.c), and where the process announces a constraint or waits.
 */
#ifndef INV_TRACE_H
#define INV_TRACE_H

#include "libinvasive/table/table.h"

/* The ring that this process writes to, INV_TRACE_NONE before it is a member.  Writers: member/join.c,
 * and rmd, which has a ring of its own.  Relaxed. */
extern _Atomic unsigned inv_trace_ring;

/* Wakes the reader, which otherwise sleeps for a tenth of a second after each round.  Thread
 * safe. */
void inv_trace_wake_reader(struct inv_table *t);

/* Writes an event that is no change of a core's word.  `body` as enum inv_trace_kind says.  Only
 * while the table's `tracing` is set; may wait for room.  Thread safe. */
void inv_trace_write(struct inv_table *t, enum inv_trace_kind kind, uint64_t body);

/* An intent in the ring. */
struct inv_trace_intent {
    struct inv_trace_event *event; /* its cell; NULL: there was no room, or no ring */
    uint64_t head;                 /* of the cell, as long as it is this intent's */
};

/*
 * inv_trace_intend - writes the intent to change a core's word from `old` to `next`; may wait for
 * room. inv_trace_settle - marks the intent: the word has changed, or not.  Does nothing if the
 * cell has
 *                    another event already.
 * inv_trace_late   - writes a change that has been made without an intent, since tracing began
 *                    meanwhile.
 */
struct inv_trace_intent inv_trace_intend(struct inv_table *t, unsigned core, uint64_t old,
                                         uint64_t next);
void inv_trace_settle(struct inv_trace_intent intent, bool happened);
void inv_trace_late(struct inv_table *t, unsigned core, uint64_t old, uint64_t next);

#endif
