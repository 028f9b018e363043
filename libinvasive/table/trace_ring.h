/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * trace_ring.h - a ring of events for each process of a domain, in the core table, and one for rmd.
 *
 * While the table's `tracing` is set, every change of a core's word is written to the ring of the
 * process that makes it, and so are announcements and waits.  A thread of rmd (trace_writer.c)
 * moves events from the rings to a file while the program runs.  The rings are in the table, so
 * they survive whatever ends a process.
 *
 * Nothing is reordered, nor lost without being counted:
 * - A thread reserves a cell, writes the event into it as an *intent*, changes the core's word, and
 *   marks the cell as done (or void, when another thread has changed the word first).  If the
 *   thread is killed in between, the intent is there, and the word itself tells whether it has
 *   changed: its epoch counts changes, so the events of a core form a chain without a gap (old
 *   fields, new fields, epoch).
 * - The cell's first word says that the cell is complete: it is written last (release).  The
 *   reader, which acquires that word, clears it before it gives the cell back.
 * - A full ring makes its writers wait for the reader.  After a second in which the reader makes no
 *   progress, events are counted as lost until it goes on.  rmd never waits: if its own ring has no
 *   room an event is lost at once, and counted.
 * invasive-trace(5) documents the file.
 */
#ifndef INV_TRACE_RING_H
#define INV_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
#ifndef INV_SMALL
    INV_TRACE_EVENTS = 8192, /* of a ring; a power of two */
    INV_TRACE_RMD = 256,      /* INV_MAX_SLOTS: the ring after those of the slots is rmd's */
#else
    INV_TRACE_EVENTS = 256,
    INV_TRACE_RMD = 16,
#endif
    INV_TRACE_RINGS = INV_TRACE_RMD + 1,
    INV_TRACE_NONE = INV_TRACE_RINGS, /* the process writes no events */
};

enum inv_trace_kind {
    INV_TRACE_CORE = 1,      /* a core's word has changed; `body` says how (trace.c) */
    INV_TRACE_TOKEN = 2,     /* a token was taken (`body` 1) or returned (`body` -1) */
    INV_TRACE_WORKLOAD = 3,  /* announced: a double */
    INV_TRACE_RANGE = 4,     /* announced: minimum of cores, and in the upper half the maximum */
    INV_TRACE_ITERATION = 5, /* announced: seconds of an iteration, a double */
    INV_TRACE_SPEEDUP = 6,   /* announced: cores in the upper half, a float in the lower one */
    INV_TRACE_SLEEP = 7,     /* the main thread goes to sleep in a wait; `body`: its call site */
    INV_TRACE_WAIT = 8,      /* the wait is over: ns that it took | call site << 48 */
};

/* States of a cell. */
enum { INV_TRACE_EMPTY = 0, INV_TRACE_INTENT = 1, INV_TRACE_DONE = 2, INV_TRACE_VOID = 3 };

/*
 * bits  0..9   of `head`: the core, of INV_TRACE_CORE
 * bits 10..13  enum inv_trace_kind
 * bits 14..15  state
 * bits 16..63  CLOCK_MONOTONIC in ns, the lower 48 bits of it: three days
 */
struct inv_trace_event {
    _Atomic uint64_t head;
    _Atomic uint64_t body; /* written before head */
};

static inline uint64_t inv_trace_head(enum inv_trace_kind kind, unsigned core, unsigned state,
                                      uint64_t now_ns)
{
    return (core & 0x3ff) | (uint64_t)kind << 10 | (uint64_t)(state & 3) << 14 | now_ns << 16;
}
static inline unsigned inv_trace_state(uint64_t head) { return head >> 14 & 3; }
static inline uint64_t inv_trace_with_state(uint64_t head, unsigned state)
{
    return (head & ~(UINT64_C(3) << 14)) | (uint64_t)state << 14;
}

struct inv_trace_ring {
    _Atomic uint64_t head; /* cells ever reserved; writers: threads of the process, by CAS */
    _Atomic uint64_t lost; /* number of events that found no cell */
    _Atomic uint32_t stuck; /* 1: the reader makes no progress; set by a writer, cleared by the
                               reader */
    _Atomic uint64_t tail __attribute__((aligned(64))); /* cells ever read; writer: the reader */
    struct inv_trace_event event[INV_TRACE_EVENTS] __attribute__((aligned(64)));
} __attribute__((aligned(4096)));

#endif
