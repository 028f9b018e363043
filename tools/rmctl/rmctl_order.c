/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_order.c - commands: rmctl shrink, expand, pin, suspend, resume, limit and drain.  rmd answers when a
 * command has had its effect, and says how long that took.
 */
#define _GNU_SOURCE
#include "client/client.h"
#include "client/client_control.h"
#include "rmd/config/core_list.h"
#include "rmd/policy/limit.h"
#include "libinvasive/base/cpulist.h"
#include "tools/rmctl/rmctl.h"
#include "tools/rmctl/rmctl_admin_snapshot.h"
#include "rmd/loop/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_RESET = 256, OPT_WAIT, OPT_CORES, OPT_JOB_CORES, OPT_UNDO };
enum { WAIT_MS = 2000 };
enum { ANY_RANK = -1 };

#define WAIT_OPTION                                                                                \
    {"wait", OPT_WAIT, "MS", 0,                                                                    \
     "wait MS milliseconds for the effect (default 2000; 0: not at all); then exit code 2", 0}

static const struct argp_option order_options[] = {
    {"reset", OPT_RESET, NULL, 0, "take this command back", 0}, WAIT_OPTION, {0}};
static const struct argp_option job_options[] = {WAIT_OPTION, {0}};
static const struct argp_option limit_options[] = {
    {"cores", OPT_CORES, "N", 0, "cores that the user may have, or all", 0},
    {"job-cores", OPT_JOB_CORES, "N", 0, "cores that each launch of the user may own, or all", 0},
    RMCTL_USER_OPTION("of this user; default: your own limits"),
    {"reset", OPT_RESET, NULL, 0, "as before any rmctl limit: by the configuration", 0},
    WAIT_OPTION, {0}};
static const struct argp_option drain_options[] = {
    {"undo", OPT_UNDO, NULL, 0, "these cores may be used again", 0}, WAIT_OPTION, {0}};

/* The arguments of the command line. */
struct order {
    struct inv_control control;
    const char *name; /* of the command */
    int rank;         /* instead of the pid; ANY_RANK: not given */
    bool has_process, has_value;
};

/* --- options and arguments */

static unsigned number_or_all(struct argp_state *state, const char *what, const char *arg)
{
    unsigned n = 0;
    if (strcmp(arg, "all") && !rmd_number(arg, 1, INV_MAX_CORES, &n))
        argp_error(state, "%s '%s': use a number from 1 to %d, or all", what, arg, INV_MAX_CORES);
    return n;
}

static void read_process(struct argp_state *state, struct order *o, const char *arg)
{
    unsigned pid = 0;
    if (!strncmp(arg, "rank:", 5))
        o->rank = (int)rmctl_number(state, "rank", arg + 5, 0, 1 << 24);
    else if (!rmd_number(arg, 1, INT32_MAX, &pid))
        argp_error(state, "process '%s': use a pid, or rank:N; rmctl status lists them", arg);
    o->control.pid = (int32_t)pid;
    o->has_process = true;
}

static void read_cores(struct argp_state *state, struct order *o, const char *arg)
{
    struct inv_cpus set;
    if (inv_cpulist_parse(arg, &set) || inv_cpus_last(&set) >= INV_MAX_CORES)
        argp_error(state, "'%s' is no list of cores: use one such as 0-3,8, by the first column of "
                          "rmctl status", arg);
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        if (inv_cpus_has(&set, c))
            inv_set_add(o->control.set, c);
}

static bool is_of_process(const struct order *o)
{
    return o->control.verb != INV_LIMIT && o->control.verb != INV_DRAIN;
}

/* Does the command concern the job of the process? */
static bool is_of_job(const struct order *o)
{
    return o->control.verb >= INV_SUSPEND;
}

static bool takes_list(const struct order *o)
{
    return o->control.verb == INV_PIN || o->control.verb == INV_DRAIN;
}

static void read_argument(struct argp_state *state, struct order *o, const char *arg)
{
    if (is_of_process(o) && !o->has_process) {
        read_process(state, o, arg);
        return;
    }
    bool takes_value = o->control.verb != INV_LIMIT && o->control.verb != INV_SUSPEND &&
                       o->control.verb != INV_RESUME;
    if (o->has_value || !takes_value)
        argp_error(state, "'%s' is one argument too many", arg);
    o->has_value = true;
    if (takes_list(o))
        read_cores(state, o, arg);
    else if (o->control.verb == INV_PRIORITY)
        o->control.cores = rmctl_number(state, "priority", arg, 0, RMD_PRIORITY_MOST);
    else
        o->control.cores = rmctl_number(state, "cores", arg, 1, INV_MAX_CORES);
}

static void check_complete(struct argp_state *state, const struct order *o)
{
    bool of_process = is_of_process(o);
    bool may_ask = o->control.verb == INV_DRAIN && !o->control.reset;
    if (o->control.verb == INV_LIMIT || (may_ask && !o->has_value))
        return;
    if (of_process && !o->has_process)
        argp_error(state, "which process? Name its pid, or rank:N; rmctl status lists them");
    if (o->control.verb == INV_PRIORITY && !o->has_value)
        argp_error(state, "which priority? Use a number from 0 to %d", RMD_PRIORITY_MOST);
    if (is_of_job(o))
        return;
    if (of_process && o->control.reset ? o->has_value : !o->has_value)
        argp_error(state, o->has_value ? "--reset stands alone"
                          : takes_list(o) ? "which cores? Use a list such as 0-3,8"
                                          : "how many cores?");
}

static error_t parse_order_option(int key, char *arg, struct argp_state *state)
{
    struct order *o = state->input;
    switch (key) {
    case OPT_RESET:
    case OPT_UNDO:
        o->control.reset = 1;
        return 0;
    case OPT_WAIT:
        o->control.wait_ms = rmctl_number(state, "--wait", arg, 0, INV_WAIT_MAX_MS);
        return 0;
    case OPT_CORES:
        o->control.cores = number_or_all(state, "--cores", arg);
        return 0;
    case OPT_JOB_CORES:
        o->control.job_cores = number_or_all(state, "--job-cores", arg);
        return 0;
    case RMCTL_USER_KEY:
        o->control.uid = rmctl_user(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        read_argument(state, o, arg);
        return 0;
    case ARGP_KEY_END:
        check_complete(state, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static struct order order_of(enum inv_verb verb, const char *name)
{
    return (struct order){.control = {.verb = verb,
                                      .uid = INV_UNSAID,
                                      .cores = INV_UNSAID,
                                      .job_cores = INV_UNSAID,
                                      .wait_ms = WAIT_MS},
                          .name = name,
                          .rank = ANY_RANK};
}

/* --- what came of it */

static json_t *limit_or_null(unsigned n)
{
    return n ? json_integer(n) : json_null();
}

static json_t *outcome_json(const struct order *o, const char *socket, const struct inv_outcome *r)
{
    static const char *const words[] = {"done", "not yet", "refused"};
    json_t *v = json_pack("{ss ss ss sf ss}", "socket", socket, "command", o->name, "outcome",
                          words[r->status <= INV_REFUSED ? r->status : INV_REFUSED],
                          "microseconds", (double)r->took_ns * 1e-3, "text", r->text);
    if (is_of_process(o))
        json_object_set_new(v, "pid", json_integer(o->control.pid));
    else if (o->control.verb == INV_LIMIT)
        json_object_set_new(v, "uid", json_integer(r->uid));
    if (r->status == INV_REFUSED) { /* which says nothing of cores */
        json_object_set_new(v, "error", json_string(r->text));
    } else if (is_of_job(o)) {
        json_object_set_new(v, "processes", json_integer(r->processes));
    } else if (is_of_process(o)) {
        json_object_set_new(v, "owned_cores", json_integer(r->owned));
    } else if (o->control.verb == INV_DRAIN) {
        json_object_set_new(v, "drained_cores", json_integer(r->owned));
    } else {
        json_object_set_new(v, "cores", limit_or_null(r->cores));
        json_object_set_new(v, "job_cores", limit_or_null(r->job_cores));
    }
    return v;
}

static int print_outcome(const struct order *o, const char *socket, const struct inv_outcome *r)
{
    double us = (double)r->took_ns * 1e-3;
    bool asked = o->control.verb == INV_LIMIT && !r->took_ns;
    if (rmctl_common.json)
        rmctl_print_json(outcome_json(o, socket, r));
    else if (r->status == INV_DONE && asked)
        printf("%s\n", r->text);
    else if (r->status == INV_DONE)
        printf("%s (after %.0f us)\n", r->text, us);
    if (r->status == INV_NOT_YET && is_of_job(o))
        fprintf(stderr, "rmctl: %s at %s: in force, but after %.0f ms %s\n", o->name, socket, us * 1e-3,
                r->text);
    else if (r->status == INV_NOT_YET)
        fprintf(stderr, "rmctl: %s at %s: in force, but not all of its cores were given up after "
                        "%.0f ms: they go when what runs there ends; rmctl status shows their "
                        "holders\n", o->name, socket, us * 1e-3);
    if (r->status == INV_REFUSED)
        fprintf(stderr, "rmctl: %s at %s: %s\n", o->name, socket, r->text);
    return r->status == INV_DONE      ? RMCTL_OK
           : r->status == INV_NOT_YET ? RMCTL_NOT_YET
                                      : RMCTL_FAILED;
}

/* --- of a process: which rmd has it? */

/* How many of our own processes there have this rank.  -1: the rmd cannot be asked, and the user
 * has been told. */
static int count_rank(const char *socket, int rank, int *pid)
{
    struct view view;
    struct inv_table *t = rmd_client_observe(socket, NULL);
    int n = 0;
    if (!t) {
        rmctl_complain("tell", socket);
        return -1;
    }
    view_read(&view, t, socket);
    inv_table_unmap(t);
    for (unsigned i = 0; i < view.nprocs; i++)
        if (view.process[i].rank == rank) {
            *pid = view.process[i].pid;
            n++;
        }
    return n;
}

/* An operator may mean one of them. */
static bool others_have_processes(const struct rmctl_sockets *s)
{
    bool others = false;
    for (unsigned i = 0; i < s->count; i++) {
        struct inv_admin_snapshot *o = rmd_client_admin_snapshot(s->name[i], INV_UNSAID);
        for (unsigned k = 1; o && k < o->nusers; k++)
            others |= rmd_admin_users(o)[k].nprocs > 0;
        free(o);
    }
    return others;
}

static bool find_rank(struct order *o, const struct rmctl_sockets *s)
{
    unsigned found = 0, answers = 0;
    for (unsigned i = 0; i < s->count; i++) {
        int n = count_rank(s->name[i], o->rank, &o->control.pid);
        answers += n >= 0;
        found += n > 0 ? (unsigned)n : 0;
    }
    if (answers && found != 1)
        fprintf(stderr, "rmctl: %s: %s of yours is rank %d: use a pid of rmctl status%s\n", o->name,
                found ? "more than one process" : "no process", o->rank,
                others_have_processes(s) ? ", for another user's rmctl status --user=USER" : "");
    return found == 1;
}

static int command_process(struct order *o)
{
    struct rmctl_sockets s;
    struct inv_outcome r, refused = {0};
    const char *refuser = NULL;
    if (!rmctl_find(&s) || (o->rank != ANY_RANK && !find_rank(o, &s)))
        return RMCTL_FAILED;
    for (unsigned i = 0; i < s.count; i++) {
        if (!rmd_client_control(s.name[i], &o->control, &r)) {
            rmctl_complain("tell", s.name[i]);
            continue;
        }
        if (r.status != INV_REFUSED || r.pid == o->control.pid)
            return print_outcome(o, s.name[i], &r);
        refused = r; /* it is none of its processes */
        refuser = s.name[i];
    }
    return refuser ? print_outcome(o, refuser, &refused) : RMCTL_FAILED;
}

static int command_machine(struct order *o)
{
    struct rmctl_sockets s;
    struct inv_outcome r;
    const char *socket = rmctl_find_one(&s);
    if (!socket)
        return RMCTL_FAILED;
    if (rmd_client_control(socket, &o->control, &r))
        return print_outcome(o, socket, &r);
    rmctl_complain("tell", socket);
    return RMCTL_FAILED;
}

/* rmctl drain without a list: prints the drained cores. */
static int show_drained(void)
{
    struct rmctl_sockets s;
    const char *socket = rmctl_find_one(&s);
    struct inv_admin_snapshot *o = socket ? rmd_client_admin_snapshot(socket, INV_UNSAID) : NULL;
    char list[200], text[256];
    unsigned n = 0;
    if (!o) {
        if (socket)
            rmctl_complain("ask", socket);
        return RMCTL_FAILED;
    }
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        n += inv_set_has(o->drained, c);
    rmd_list_cores(o->drained, list, sizeof list);
    snprintf(text, sizeof text, "%u core%s drained%s%s", n, rmd_plural(n, "s"), n ? ": " : "",
             list);
    int status = RMCTL_OK;
    if (rmctl_common.json)
        status = rmctl_print_json(json_pack(
            "{ss ss ss ss si so}", "socket", socket, "command", "drain", "outcome", "done", "text",
            text, "drained_cores", (int)n, "drained", admin_cores_json(o->drained)));
    else
        printf("%s\n", text);
    free(o);
    return status;
}

/* --- commands */

/* The command `word`, which orders something of a process or of a job. */
#define ORDER(word, verb, arguments, options, brief, about)                                       \
    static int run_##word(int argc, char **argv)                                                  \
    {                                                                                             \
        struct order o = order_of(verb, #word);                                                   \
        rmctl_parse(argc, argv, options, parse_order_option, arguments, about, &o);               \
        return command_process(&o);                                                               \
    }                                                                                             \
    const struct rmctl_command rmctl_##word##_command = {#word, brief, run_##word, options}

ORDER(shrink, INV_SHRINK, "PROC CORES\nPROC --reset", order_options,
      "a process owns at most this number of cores",
      "Process PROC (a pid, or rank:N) owns at most CORES cores.");
ORDER(expand, INV_EXPAND, "PROC CORES\nPROC --reset", order_options,
      "a process owns at least this number of cores",
      "Process PROC (a pid, or rank:N) owns at least CORES cores.");
ORDER(pin, INV_PIN, "PROC LIST\nPROC --reset", order_options,
      "a process owns these cores and no other",
      "Process PROC (a pid, or rank:N) owns the cores of LIST, and no other one does.");
ORDER(suspend, INV_SUSPEND, "JOB", job_options, "a job waits, and others have its cores",
      "The job JOB (a pid of any of its processes, or rank:N) has no core, and its threads wait, "
      "until it is resumed.");
ORDER(resume, INV_RESUME, "JOB", job_options, "a suspended job goes on",
      "The job JOB (a pid of any of its processes, or rank:N), which was suspended, goes on.");
ORDER(priority, INV_PRIORITY, "JOB N", job_options, "a job gets its cores before others",
      "The job JOB (a pid of any of its processes, or rank:N) has priority N, 0 to 100: it gets "
      "its cores before those of less, which keep their least.  50 is usual, and only root may "
      "give more.");

static int run_limit(int argc, char **argv)
{
    struct order o = order_of(INV_LIMIT, "limit");
    rmctl_parse(argc, argv, limit_options, parse_order_option, "",
                "Limits of a user; without --cores, --job-cores and --reset: what they are.", &o);
    return command_machine(&o);
}

const struct rmctl_command rmctl_limit_command = {
    "limit", "cores of a user, and of each of its launches", run_limit, limit_options};

static int run_drain(int argc, char **argv)
{
    struct order o = order_of(INV_DRAIN, "drain");
    rmctl_parse(argc, argv, drain_options, parse_order_option, "[LIST]\n--undo LIST",
                "No process may use the cores of LIST, until it is undone; without LIST: which "
                "these are now.", &o);
    return o.has_value ? command_machine(&o) : show_drained();
}

const struct rmctl_command rmctl_drain_command = {
    "drain", "no process may use these cores", run_drain, drain_options};
