/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_trace.c - rmctl trace start FILE, rmctl trace stop: traces all processes that rmd
 * manages now or later.  The file is opened here, with the user's rights; rmd gets its descriptor. */
#define _GNU_SOURCE
#include "tools/rmctl/rmctl.h"
#include "client/trace_client.h"

#include <stdio.h>
#include <string.h>

/* Prints the outcome as JSON, with --json. */
static int print_outcome(const char *socket, const char *what, bool good, const char *why,
                         unsigned lost)
{
    bool whole = good && !why[0] && !lost;
    json_t *v = json_pack("{ss ss ss ss si}", "socket", socket, "command", what, "outcome",
                          good ? "done" : "refused", "text", why, "lost_events", (int)lost);
    if (!whole)
        json_object_set_new(v, "error", json_string(why[0] ? why : "events are lost"));
    if (!rmctl_common.json)
        json_decref(v);
    else if (rmctl_print_json(v) != RMCTL_OK)
        return RMCTL_FAILED;
    return whole ? RMCTL_OK : RMCTL_FAILED;
}

static int start_trace(const char *socket, uint32_t uid, const char *path)
{
    char why[RMD_TRACE_WHY];
    struct rmd_trace_file file;
    if (!rmd_trace_open(&file, path, rmctl_of_another(uid) ? 0600 : 0666, why)) {
        fprintf(stderr, "rmctl: cannot write the trace to %s: %s\n", path, why);
        return RMCTL_FAILED;
    }
    bool started = rmd_trace_ask_start(socket, uid, file.fd, why);
    if (started) {
        rmd_trace_file_close(&file);
    } else {
        rmd_trace_file_discard(&file);
        fprintf(stderr, "rmctl: no trace in %s: %s\n", path, why);
    }
    return print_outcome(socket, "trace start", started, started ? "" : why, 0);
}

static int stop_trace(const char *socket, uint32_t uid)
{
    char why[RMD_TRACE_WHY];
    unsigned lost;
    bool stopped = rmd_trace_ask_stop(socket, uid, &lost, why);
    if (!stopped)
        fprintf(stderr, "rmctl: no trace has been ended: %s\n", why);
    else if (why[0])
        fprintf(stderr, "rmctl: the trace is not complete: %s\n", why);
    if (lost)
        fprintf(stderr, "rmctl: the trace lacks %u events: rmd had no time to write them\n", lost);
    return print_outcome(socket, "trace stop", stopped, why, lost);
}

static const struct argp_option trace_options[] = {
    RMCTL_USER_OPTION("of this user's processes, for an operator; default: your own"), {0}};

struct words {
    const char *what, *file;
    uint32_t uid; /* INV_UNSAID: our own */
};

static error_t parse_trace_option(int key, char *arg, struct argp_state *state)
{
    struct words *w = state->input;
    if (key == RMCTL_USER_KEY) {
        w->uid = rmctl_user(state, arg);
        return 0;
    }
    if (key == ARGP_KEY_ARG && !w->file) {
        *(w->what ? &w->file : &w->what) = arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG ||
        (key == ARGP_KEY_END && (!w->what || strcmp(w->what, w->file ? "start" : "stop"))))
        argp_error(state, "use trace start FILE, or trace stop");
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

static int run_trace(int argc, char **argv)
{
    struct rmctl_sockets sockets;
    struct words w = {.uid = INV_UNSAID};
    rmctl_parse(argc, argv, trace_options, parse_trace_option, "start FILE\nstop",
                "Every change of a core's owner and holder, announcements and waits, of programs "
                "that run already; invade-trace(1) shows them.",
                &w);
    const char *socket = rmctl_find_one(&sockets);
    if (!socket)
        return RMCTL_FAILED;
    return w.file ? start_trace(socket, w.uid, w.file) : stop_trace(socket, w.uid);
}

const struct rmctl_command rmctl_trace_command = {
    "trace", "trace which process has which core, over time", run_trace, trace_options};
