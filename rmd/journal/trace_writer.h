/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace_writer.h - a thread that moves the events of processes (libinvasive/table/trace_ring.h) to a file.
 * rmd never waits for it: the file is a client's, and may be on a disk that does not answer.  The
 * main thread queues for it, in order, which processes join and leave, and which table there is.
 */
#ifndef RMD_TRACE_WRITER_H
#define RMD_TRACE_WRITER_H

#include "rmd/loop/loop.h"
#include "libinvasive/table/table.h"
#include "libinvasive/table/trace_file.h"

#include <pthread.h>
#include <sys/types.h>

/* The rings of one table. */
struct rmd_trace_reading {
    struct inv_table *table; /* a mapping of its own */
    /* rings of processes that have been members during the trace: only these are read.  release,
     * after tail; partner: the thread's acquire */
    _Atomic bool used[INV_TRACE_RINGS];
    /* `head` of the rings when their processes had gone; writer: the main thread */
    _Atomic uint64_t settled[INV_TRACE_RINGS];
    uint64_t tail[INV_TRACE_RINGS];
};

static inline bool rmd_trace_is_read(struct rmd_trace_reading *r, unsigned ring)
{
    return atomic_load_explicit(&r->used[ring], memory_order_acquire);
}

/* What the main thread queues: a chunk, before which all earlier events are written. */
struct rmd_trace_item {
    struct rmd_trace_item *next;
    struct rmd_trace_reading *reading; /* not NULL: another table begins here */
    bool leave, last;                  /* the table ends here; the trace does, too */
    size_t bytes;                      /* of the chunk, with its head */
    struct inv_trace_chunk chunk[];    /* the head, and what follows it */
};

/* The main thread's answer when the thread has checked the file. */
enum rmd_trace_answer { RMD_TRACE_WAIT, RMD_TRACE_BEGIN, RMD_TRACE_END };

struct rmd_trace_writer {
    uid_t taker; /* the user of the client */
    pthread_t thread;
    _Atomic bool done; /* release: the thread will not touch this any more */
    struct rmd_source file_checked; /* the thread has looked at the file; an eventfd */
    _Atomic uint32_t go;   /* futex: enum rmd_trace_answer */
    _Atomic uint32_t ends; /* futex: of tables, so far */
    int file; /* the thread's; -1 none */
    int client; /* socket of the client that asked for the trace, until the file has been checked;
                   then of the one that asks for its end */

    pthread_mutex_t lock; /* guards: */
    struct rmd_trace_item *first, **end;
    size_t queued;
    bool missing; /* there was no room: items after those in the queue are not in the file */

    /* the thread's own */
    struct rmd_trace_reading *reading; /* NULL: no table */
    uint32_t bell_seen;
    uint64_t spent_ns, due_ns; /* processor time so far; of the leaky bucket */
    uint64_t events, lost; /* number of events in the file; of lost ones in tables that have
                              ended */
    off_t written;
    int error; /* errno of what ended the writing */
    bool as_root; /* the thread could not become the taker */
    struct {
        struct inv_trace_chunk chunk;
        uint64_t lost;
        uint64_t event[INV_TRACE_EVENTS][2];
    } out;
};

/* Starts the thread.  *writer is zeros but for file_checked, which gets an event when the thread
 * has looked at the file.  The next message in `client` carries the file's descriptor.  0, or an
 * errno. */
int rmd_trace_writer_start(struct rmd_trace_writer *writer, uid_t taker, int client);
/* Tells the thread what to do, after that event. */
void rmd_trace_writer_decide(struct rmd_trace_writer *writer, enum rmd_trace_answer answer);
/* The last item of a table has been queued. */
void rmd_trace_writer_end_table(struct rmd_trace_writer *writer);
/* Joins the thread, if it has done its work.  False: it has not. */
bool rmd_trace_writer_join(struct rmd_trace_writer *writer);
/* Frees items that are still queued, after the thread has ended. */
void rmd_trace_writer_free(struct rmd_trace_writer *writer);

/* A new chunk for the thread, with `bytes` bytes after its head; NULL: no memory, or the disk is
 * slow, and the file ends here. */
struct rmd_trace_item *rmd_trace_item_new(struct rmd_trace_writer *writer,
                                          enum inv_trace_chunk_type type, size_t bytes);
static inline void *rmd_trace_item_body(struct rmd_trace_item *item) { return item->chunk + 1; }
/* Queues the item, which the thread frees; NULL: does nothing. */
void rmd_trace_item_queue(struct rmd_trace_writer *writer, struct rmd_trace_item *item);

#endif
