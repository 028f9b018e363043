/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace.h - moves the events of a domain's processes (libinvasive/trace.h) to a file.
 *
 * A thread does it, which nobody waits for: the file is a client's, and may be on a disk that does
 * not answer.  What the main thread knows (who joins, who goes, which table there is) it hands
 * to that thread, in order.  Only rmd's main thread calls these.
 */
#ifndef RMD_TRACE_H
#define RMD_TRACE_H

#include "domain.h"

/* Begin a trace in the file whose descriptor is in the next message of `client`, a socket of user
 * `taker` that is ours from here on, and gets the answer.  0; or -1 with errno, EBUSY there is a
 * trace, and the socket stays the caller's. */
int rmd_trace_start(struct rmd_domain *domain, uid_t taker, int client);

/* Who has begun the trace that there is. */
uid_t rmd_trace_taker(const struct rmd_domain *domain);

/* End it, if there is one.  `client`, -1 none, is ours from here on, and gets an answer when the file is
 * complete. */
void rmd_trace_stop(struct rmd_domain *domain, int client);

/* A table has been made, and nobody knows it yet (fd of it); or is about to go (-1). */
void rmd_trace_table(struct rmd_domain *domain, int fd);
/* A process has its slot; or is dead, or (left) a member no more, and its record still there. */
void rmd_trace_joined(struct rmd_domain *domain, unsigned slot);
void rmd_trace_gone(struct rmd_domain *domain, unsigned slot, bool left);

/* The domain goes: the trace ends, and nobody waits for that. */
void rmd_trace_close(struct rmd_domain *domain);

/* All domains have gone, and rmd ends: those traces are waited for for a moment, whatever their
 * number.  What is on a disk that does not answer ends with the process. */
void rmd_trace_end(void);

#endif
