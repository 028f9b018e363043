/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trace_client.h - asking an rmd for a trace, for the tools. */
#ifndef RMD_TRACE_CLIENT_H
#define RMD_TRACE_CLIENT_H

#include "rmd/config/control_protocol.h"

#include <sys/types.h>

enum { RMD_TRACE_WHY = sizeof((struct inv_reply *)0)->message };

struct rmd_trace_file {
    const char *path; /* the caller's */
    int fd;           /* -1: not open */
    bool is_new;      /* it was not there before */
};

/* Opens this file for a trace.  It must not exist, or be a trace: "--trace ./solver input" must not
 * destroy the solver.  A new file gets this mode, within the umask, since a trace tells of a user's
 * programs.  False, and why: it cannot be written, or is no trace. */
bool rmd_trace_open(struct rmd_trace_file *file, const char *path, mode_t mode,
                    char why[RMD_TRACE_WHY]);

/* Closes the file, of which rmd has, or had, a descriptor of its own. */
void rmd_trace_file_close(struct rmd_trace_file *file);

/* There is no trace: closes the file, and removes it if it is new and still empty. */
void rmd_trace_file_discard(struct rmd_trace_file *file);

/* Asks the rmd at `socket` to write a trace of this user's domain to the file.  uid INV_UNSAID: our
 * own domain; only an operator may name another user.  False, with the reason in `why`: it does
 * not. */
bool rmd_trace_ask_start(const char *socket, uint32_t uid, int file, char why[RMD_TRACE_WHY]);

/* Asks rmd to end the trace; returns when the file is complete.  False: there is no trace, or rmd
 * cannot be asked.  True with a text in `why`: the trace could not be written as a whole.  *lost:
 * number of events that are not in it. */
bool rmd_trace_ask_stop(const char *socket, uint32_t uid, unsigned *lost, char why[RMD_TRACE_WHY]);

#endif
