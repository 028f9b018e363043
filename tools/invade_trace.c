/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_trace.c - --trace: rmd writes it to a file of ours while the command runs.
 *
 * What cannot be traced runs all the same; only a file that cannot be written is an error, and
 * found out before the command starts.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "trace_client.h"

static struct rmd_trace_file file = {.fd = -1};

bool invade_trace_open(const struct invade_options *o)
{
    char why[RMD_TRACE_WHY];
    if (!o->trace_file || invade_rank() != 0)
        return true;
    bool good = rmd_trace_open(&file, o->trace_file, 0666, why);
    if (!good)
        invade_say("cannot write the trace to %s: %s", o->trace_file, why);
    return good;
}

bool invade_trace_start(const struct invade_manager *m)
{
    char why[RMD_TRACE_WHY];
    if (file.fd < 0 || rmd_trace_ask_start(m->socket, INV_UNSAID, file.fd, why))
        return file.fd >= 0;
    invade_say("no trace in %s: %s", file.path, why);
    invade_trace_forget();
    return false;
}

void invade_trace_forget(void)
{
    rmd_trace_file_discard(&file);
}

void invade_trace_stop(const struct invade_manager *m, const struct invade_options *o)
{
    char why[RMD_TRACE_WHY];
    unsigned lost;
    if (file.fd < 0)
        return;
    bool stopped = rmd_trace_ask_stop(m->socket, INV_UNSAID, &lost, why);
    if (!stopped || why[0])
        invade_say("the trace in %s is not complete: %s", o->trace_file, why);
    if (lost)
        invade_say("the trace in %s lacks %u events: rmd had no time to write them",
                   o->trace_file, lost);
    rmd_trace_file_close(&file);
}
