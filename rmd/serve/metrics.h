/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * metrics.h - counters of rmd and its managed processes, in Prometheus' text format 0.0.4: for
 * `rmctl metrics`, and over HTTP for collectors (rmd --metrics).
 */
#ifndef RMD_METRICS_H
#define RMD_METRICS_H

#include "rmd/serve/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* The metrics of one user, or of all, *bytes bytes; the caller frees them.  NULL: no memory.
 *   commands  number of commands that were executed so far (control.h) */
char *rmd_metrics_text(uid_t uid, bool all, uint64_t commands, size_t *bytes);

/* Zeros at first.  Only the loop's thread reads and writes it. */
struct rmd_metrics_server {
    struct rmd_source listener, timeout_timer; /* NULL `ready`: not open */
    const struct rmd_control *control;         /* whose commands are counted */
    struct rmd_metrics_client *clients;        /* newest first */
    unsigned nclients;
    uint64_t backoff_until_ns; /* no connection is accepted before; 0: the listener is watched */
    uint64_t due_ns;           /* of the leaky bucket of all clients together */
    bool local; /* an AF_UNIX socket: messages may carry descriptors */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* to be removed at the end */
    char *page;                                           /* the latest metrics */
    size_t page_bytes;
    uint64_t page_ns;
};

/*
 * rmd_metrics_serve - answers GET /metrics with the metrics of all users.
 *   where  an absolute path, @NAME (an abstract socket), 127.0.0.1:PORT or [::1]:PORT
 *   control     whose commands are counted
 *   lock_tries  see socket_path.h
 * A client can neither block rmd nor keep other clients out: connections are few and short, and rmd
 * closes the oldest when there are too many.  Returns 0; or -1, and has logged the reason.
 */
int rmd_metrics_serve(struct rmd_metrics_server *server, const char *where,
                      const struct rmd_control *control, unsigned *lock_tries);
void rmd_metrics_close(struct rmd_metrics_server *server);

#endif
