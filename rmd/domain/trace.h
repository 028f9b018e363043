/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace.h - the trace of a domain: a thread of its own moves the events of the domain's processes to
 * a client's file (trace_writer.h).  Only rmd's main thread calls these.
 */
#ifndef RMD_TRACE_H
#define RMD_TRACE_H

#include "rmd/domain/domain.h"

/* Begins a trace.  The next message in `client`, a socket of user `taker`, carries the descriptor
 * of the file, and the client gets the answer.  Returns 0, and owns the socket; or -1 with errno,
 * EBUSY: there is a trace. */
int rmd_trace_start(struct rmd_domain *domain, uid_t taker, int client);

/* The user that has begun the trace.  False: no trace is being taken. */
bool rmd_trace_taker(const struct rmd_domain *domain, uid_t *taker);

/* Ends the trace, if there is one.  Owns the socket `client` (-1: none) from then on; the client
 * gets an answer when the file is complete. */
void rmd_trace_stop(struct rmd_domain *domain, int client);

/* fd: of a new table, before any process gets it; -1: the table is about to be freed. */
void rmd_trace_table(struct rmd_domain *domain, int fd);
/* _joined: a process has got this slot.  _left: it has died, or (left) goes on unmanaged; its
 * record is still in the table. */
void rmd_trace_joined(struct rmd_domain *domain, unsigned slot);
void rmd_trace_left(struct rmd_domain *domain, unsigned slot, bool left);

/* The domain is about to be freed: ends the trace, without waiting. */
void rmd_trace_close(struct rmd_domain *domain);

/* All domains are freed, and rmd ends: waits a moment for their traces, however many.  A trace on a
 * disk that does not answer ends with the process. */
void rmd_trace_end(struct rmd_shared *shared);

#endif
