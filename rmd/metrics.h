/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * metrics.h - what rmd and the processes that it manages have counted, in Prometheus' text format
 * 0.0.4: for `rmctl metrics`, and for whoever collects over HTTP (rmd --metrics).
 */
#ifndef RMD_METRICS_H
#define RMD_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Of one user, or of all; the caller frees it.  NULL: no memory. */
char *rmd_metrics_text(uid_t uid, bool all, size_t *bytes);

/*
 * rmd_metrics_serve - answer GET /metrics there, with everything about everybody: a path from / on
 * or @NAME (an abstract socket), or 127.0.0.1:PORT or [::1]:PORT.  A client can neither block us
 * nor keep others out: connections are few, short, and the oldest goes when there are too many.
 * 0; or -1, and has said why.
 */
int rmd_metrics_serve(const char *where);
void rmd_metrics_close(void);

#endif
