/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * metrics.h - counters of rmd and its managed processes, in Prometheus' text format 0.0.4: for
 * `rmctl metrics`, and over HTTP for collectors (rmd --metrics).
 */
#ifndef RMD_METRICS_H
#define RMD_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Of one user, or of all; the caller frees it.  NULL: no memory. */
char *rmd_metrics_text(uid_t uid, bool all, size_t *bytes);

/*
 * rmd_metrics_serve - answers GET /metrics with the metrics of all users.
 *   where  an absolute path, @NAME (an abstract socket), 127.0.0.1:PORT or [::1]:PORT
 * A client can neither block rmd nor keep other clients out: connections are few and short, and rmd
 * closes the oldest when there are too many.  Returns 0; or -1, and has logged the reason.
 */
int rmd_metrics_serve(const char *where);
void rmd_metrics_close(void);

#endif
