/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_events.c - rmctl events: prints recent events, and with --follow later ones. */
#define _GNU_SOURCE
#include "client/client_control.h"
#include "tools/rmctl/rmctl.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OPT_SINCE = 256 };

static const struct argp_option events_options[] = {
    {"follow", 'f', NULL, 0, "print later events as they come", 0},
    {"since", OPT_SINCE, "N", 0, "from number N on; default: all that rmd still has", 0},
    {0}};

struct wanted {
    bool follow;
    uint64_t since;
};

static error_t parse_events_option(int key, char *arg, struct argp_state *state)
{
    struct wanted *w = state->input;
    char *end;
    switch (key) {
    case 'f':
        w->follow = true;
        return 0;
    case OPT_SINCE:
        errno = 0;
        w->since = strtoull(arg, &end, 10);
        if (*arg < '0' || *arg > '9' || *end || errno)
            argp_error(state, "--since '%s': use a number, as they are printed", arg);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one argument too many", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *const kinds[INV_EVENT_KINDS] = {
    [INV_EVENT_LOST] = "lost",     [INV_EVENT_JOIN] = "join",     [INV_EVENT_LEAVE] = "leave",
    [INV_EVENT_DEATH] = "death",   [INV_EVENT_OWNER] = "owner",   [INV_EVENT_POLICY] = "policy",
    [INV_EVENT_SHARE] = "share",   [INV_EVENT_SHRINK] = "shrink", [INV_EVENT_EXPAND] = "expand",
    [INV_EVENT_PIN] = "pin",       [INV_EVENT_LIMIT] = "limit",   [INV_EVENT_DRAIN] = "drain",
    [INV_EVENT_EFFECT] = "effect", [INV_EVENT_CONFIG] = "config",
    [INV_EVENT_SUSPEND] = "suspend", [INV_EVENT_RESUME] = "resume",
    [INV_EVENT_PRIORITY] = "priority"};

static const char *name_of_kind(const struct inv_event *e)
{
    return e->kind < INV_EVENT_KINDS && kinds[e->kind] ? kinds[e->kind] : "unknown";
}

/* 2026-11-22T01:02:03.123456Z */
static void write_time(uint64_t ns, char text[64])
{
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, 64 - n, ".%06uZ", (unsigned)(ns / 1000 % 1000000));
}

static int print_as_json(const struct inv_event *e, const char *when)
{
    json_t *v = json_pack("{sI ss ss}", "number", (json_int_t)e->number, "time", when, "event",
                          name_of_kind(e));
    if (e->uid != INV_UNSAID)
        json_object_set_new(v, "uid", json_integer(e->uid));
    if (e->pid)
        json_object_set_new(v, "pid", json_integer(e->pid));
    if (e->rank >= 0)
        json_object_set_new(v, "rank", json_integer(e->rank));
    switch (e->kind) {
    case INV_EVENT_OWNER:
    case INV_EVENT_SHARE:
        json_object_set_new(v, "before", json_integer(e->before));
        json_object_set_new(v, "cores", json_integer(e->after));
        break;
    case INV_EVENT_SHRINK:
    case INV_EVENT_EXPAND:
    case INV_EVENT_LIMIT:
    case INV_EVENT_DRAIN:
        if (e->after != INV_UNSAID)
            json_object_set_new(v, "cores", json_integer(e->after));
        break;
    case INV_EVENT_SUSPEND:
    case INV_EVENT_RESUME:
        json_object_set_new(v, "processes", json_integer(e->after));
        break;
    case INV_EVENT_PRIORITY:
        json_object_set_new(v, "priority", json_integer(e->after));
        break;
    case INV_EVENT_EFFECT:
        json_object_set_new(v, "microseconds", json_integer(e->after));
        break;
    case INV_EVENT_LOST:
        json_object_set_new(v, "count", json_integer(e->after));
        break;
    }
    if (*e->text)
        json_object_set_new(v, "text", json_string(e->text));
    return rmctl_print_json(v);
}

/* The text without "process 12 " or "user 1: ", if the line says that already. */
static const char *text_without_prefix(const struct inv_event *e)
{
    char said[32];
    int n = snprintf(said, sizeof said, "process %d ", e->pid);
    if (e->pid && !strncmp(e->text, said, (size_t)n))
        return e->text + n;
    n = snprintf(said, sizeof said, "user %u: ", e->uid);
    if (e->uid != INV_UNSAID && !strncmp(e->text, said, (size_t)n))
        return e->text + n;
    return e->text;
}

/* How many cores, as far as this kind of event has that and its text does not say it. */
static void print_cores(const struct inv_event *e)
{
    switch (e->kind) {
    case INV_EVENT_OWNER:
    case INV_EVENT_SHARE:
        printf(" %u -> %u cores%s", e->before, e->after, *e->text ? ":" : "");
        break;
    case INV_EVENT_DRAIN:
        printf(" %u core%s drained%s", e->after, rmd_plural(e->after, "s"), *e->text ? ":" : "");
        break;
    case INV_EVENT_SHRINK:
    case INV_EVENT_EXPAND:
        if (e->after != INV_UNSAID)
            printf(" %u core%s", e->after, rmd_plural(e->after, "s"));
        break;
    case INV_EVENT_SUSPEND:
    case INV_EVENT_RESUME:
        printf(" %u process%s", e->after, rmd_plural(e->after, "es"));
        break;
    case INV_EVENT_PRIORITY:
        printf(" %u", e->after);
        break;
    case INV_EVENT_LOST:
        printf(" %u events: they came faster than they were read", e->after);
        break;
    }
}

static void print_for_people(const struct inv_event *e, const char *when)
{
    printf("%8llu %s %-7s", (unsigned long long)e->number, when, name_of_kind(e));
    if (e->uid != INV_UNSAID)
        printf(" user %u", e->uid);
    if (e->pid)
        printf(" process %d", e->pid);
    if (e->rank >= 0)
        printf(" rank %d", e->rank);
    print_cores(e);
    if (*e->text)
        printf(" %s", text_without_prefix(e));
    if (e->kind == INV_EVENT_EFFECT)
        printf(" (after %u us)", e->after);
    printf("\n");
    fflush(stdout);
}

static bool print_event(struct inv_event *e)
{
    char when[64];
    e->text[sizeof e->text - 1] = '\0';
    write_time(e->time_ns, when);
    if (rmctl_common.json)
        return print_as_json(e, when) == RMCTL_OK;
    print_for_people(e, when);
    return !ferror(stdout);
}

static int run_events(int argc, char **argv)
{
    struct rmctl_sockets s;
    struct wanted w = {0};
    rmctl_parse(argc, argv, events_options, parse_events_option, "",
                "Processes that come and go, owners that change, commands.", &w);
    const char *socket = rmctl_find_one(&s);
    if (!socket)
        return RMCTL_FAILED;
    int fd = rmd_client_events(socket, w.since, w.follow);
    if (fd < 0) {
        rmctl_complain("follow", socket);
        return RMCTL_FAILED;
    }
    struct inv_event e = {0};
    ssize_t n;
    while ((n = recv(fd, &e, sizeof e, 0)) == (ssize_t)sizeof e && e.kind != INV_EVENT_END)
        if (!print_event(&e))
            break;
    bool ended = n == (ssize_t)sizeof e && (e.kind != INV_EVENT_END || !*e.text);
    e.text[sizeof e.text - 1] = '\0';
    if (n == (ssize_t)sizeof e && !ended)
        fprintf(stderr, "rmctl: rmd at %s has hung up: %s\n", socket, e.text);
    else if (n == 0)
        fprintf(stderr, "rmctl: rmd at %s has hung up without a word: was it killed?\n", socket);
    else if (!ended)
        rmctl_complain("follow", socket);
    close(fd);
    return ended ? RMCTL_OK : RMCTL_FAILED;
}

const struct rmctl_command rmctl_events_command = {
    "events", "what has happened of late", run_events, events_options};
