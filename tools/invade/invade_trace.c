/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_trace.c - --trace: rmd writes the trace to a file that invade has opened, while the
 * command runs.
 *
 * At the end invade adds the report on the run, so that a picture of the trace has the same
 * numbers.  If rmd cannot write a trace the command runs without; only a file that cannot be
 * written is an error, which is found before the command starts.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/base/now.h"
#include "libinvasive/table/trace_file.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

bool invade_trace_open(struct rmd_trace_file *file, const struct invade_options *o)
{
    char why[RMD_TRACE_WHY];
    if (!o->trace_file || invade_rank() != 0)
        return true;
    bool good = rmd_trace_open(file, o->trace_file, 0666, why);
    if (!good)
        invade_say("cannot write the trace to %s: %s", o->trace_file, why);
    return good;
}

bool invade_trace_start(struct rmd_trace_file *file, const struct invade_manager *m)
{
    char why[RMD_TRACE_WHY];
    if (file->fd < 0 || rmd_trace_ask_start(m->socket, INV_UNSAID, file->fd, why))
        return file->fd >= 0;
    invade_say("no trace in %s: %s", file->path, why);
    rmd_trace_file_discard(file);
    return false;
}

bool invade_trace_stop(struct rmd_trace_file *file, const struct invade_manager *m,
                       const struct invade_options *o)
{
    char why[RMD_TRACE_WHY];
    unsigned lost;
    if (file->fd < 0)
        return false;
    bool stopped = rmd_trace_ask_stop(m->socket, INV_UNSAID, &lost, why);
    if (!stopped || why[0])
        invade_say("the trace in %s is not complete: %s", o->trace_file, why);
    if (lost)
        invade_say("the trace in %s lacks %u events: rmd had no time to write them",
                   o->trace_file, lost);
    if (stopped && !why[0])
        return true;
    rmd_trace_file_close(file);
    return false;
}

static bool append(int fd, const void *what, size_t bytes)
{
    const char *from = what;
    while (bytes) {
        ssize_t n = write(fd, from, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* rmd has written through the same open file, so this chunk comes after its last one. */
void invade_trace_add_report(struct rmd_trace_file *file, const char *json)
{
    size_t bytes = strlen(json);
    signal(SIGXFSZ, SIG_IGN); /* a file that has become too large is an error of write */
    struct inv_trace_chunk chunk = {
        .type = INV_CHUNK_REPORT, .bytes = (uint32_t)bytes, .time_ns = inv_now_ns()};
    off_t end = lseek(file->fd, 0, SEEK_CUR);
    bool good = bytes <= INV_TRACE_REPORT_MOST &&
                append(file->fd, &chunk, sizeof chunk) && append(file->fd, json, bytes);
    if (!good && (end < 0 || ftruncate(file->fd, end)))
        invade_say("the end of the trace in %s is not whole", file->path);
    else if (!good)
        invade_say("the trace in %s has no report: %s", file->path,
                   bytes > INV_TRACE_REPORT_MOST ? "it is too large" : strerror(errno));
    rmd_trace_file_close(file);
}
