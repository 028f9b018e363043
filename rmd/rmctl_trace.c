/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_trace.c - rmctl trace start FILE, rmctl trace stop: of all processes that the rmd has now,
 * and that come.  The file is opened here, with the user's rights; rmd gets its descriptor. */
#define _GNU_SOURCE
#include "rmctl_trace.h"
#include "trace_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool rmctl_trace_start(const char *socket, const char *path)
{
    char why[RMD_TRACE_WHY];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        fprintf(stderr, "rmctl: cannot write the trace to %s: %s\n", path, strerror(errno));
        return false;
    }
    bool started = rmd_trace_ask_start(socket, file, why);
    close(file);
    if (!started)
        fprintf(stderr, "rmctl: no trace: %s\n", why);
    return started;
}

bool rmctl_trace_stop(const char *socket)
{
    char why[RMD_TRACE_WHY];
    unsigned lost;
    bool stopped = rmd_trace_ask_stop(socket, &lost, why);
    if (!stopped)
        fprintf(stderr, "rmctl: no trace has been ended: %s\n", why);
    else if (why[0])
        fprintf(stderr, "rmctl: the trace is not complete: %s\n", why);
    if (lost)
        fprintf(stderr, "rmctl: the trace lacks %u events: rmd had no time to write them\n", lost);
    return stopped && !why[0] && !lost;
}
