/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade.c - the launcher: runs a command so that its processes share their cores.
 *
 * It finds or starts a resource manager, sets LD_PRELOAD and a few variables, runs the
 * command, and ends exactly as the command ended.  If something is missing, the command
 * still runs, unmanaged, and one line on stderr says why.
 *
 *   invade_paths.c   where rmd and the libraries are; the environment
 *   invade_rmd.c     the resource manager of this run
 *   invade_node.c    those of other nodes, and one for all ranks of a node
 *   invade_run.c     the command: signals and exit status
 *   invade_report.c  --report: invade_model.c (the numbers), invade_symbols.c (source lines),
 *                    invade_text.c and invade_json.c (how they are written)
 *   invade_others.c  what other programs took of our cores
 *   invade_trace.c   --trace
 *   invade_compare.c --compare
 */
#define _GNU_SOURCE
#include "config.h"
#include "invade.h"
#include "libinvasive/base/cpulist.h"
#include "libinvasive/base/now.h"
#include "rmd/policy/limit.h"
#include "rmd/policy/policy.h"
#include "libinvasive/launch/image.h"
#include "libinvasive/launch/preload.h"
#include "rmd/placement/smt.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/speeds.h"
#include "libinvasive/table/table.h"
#include "rmd/loop/text.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE "/run/invasive/rmd.sock"

enum {
    OPT_REPORT = 256,
    OPT_TRACE,
    OPT_COMPARE,
    OPT_THREADS,
    OPT_LEARN,
    OPT_TEAM,
    OPT_TUNE,
    OPT_MPI_TASKS,
    OPT_CORES,
    OPT_EMULATE,
    OPT_POLICY,
    OPT_PRIORITY,
    OPT_SMT,
    OPT_BOUND,
    OPT_SOCKET,
    OPT_OFF
};

static const struct argp_option argp_options[] = {
    {"report", OPT_REPORT, "FILE", OPTION_ARG_OPTIONAL,
     "at the end, report what every process did with its cores and where it waited, on stderr or "
     "in FILE (-: standard output), as JSON if its name ends in .json", 0},
    {"trace", OPT_TRACE, "FILE", 0,
     "write owner and holder of each core, and waits, over time, to FILE; see invade-trace(1)",
     0},
    {"compare", OPT_COMPARE, "N", OPTION_ARG_OPTIONAL,
     "run the command N times (default 3) as if invade were not there and N times managed, in "
     "turns, and print on stderr what that changed", 0},
    {"threads", OPT_THREADS, "N", 0, "OpenMP team size of every process", 0},
    {"learn", OPT_LEARN, "FILE", OPTION_ARG_OPTIONAL,
     "remember in FILE (default ~/.local/state/invasive/learnt.json) how long the command takes "
     "with smaller teams, and use the fastest size from then on", 0},
    {"team", OPT_TEAM, "KIND", 0,
     "fixed (default), or adaptive: no more threads than cores if many of them would sleep", 0},
    {"tune", OPT_TUNE, "LIST", OPTION_ARG_OPTIONAL,
     "find the team size (team), how long threads that wait spin (spin), and how often ranks that sleep look for "
     "messages (poll), by iteration time; default: team,spin,poll", 0},
    {"mpi-tasks", OPT_MPI_TASKS, NULL, 0,
     "threads that wait in MPI run OpenMP tasks meanwhile; read mpi-shim(7) first", 0},
    {"cores", OPT_CORES, "LIST", 0, "use these CPUs only, such as 0-3,8", 0},
    {"emulate-cores", OPT_EMULATE, "N", 0,
     "pretend to have N cores, or cores of several speeds, such as 4x1.0,4x0.6; no thread is pinned", 0},
    {"policy", OPT_POLICY, "NAME", 0,
     "how many cores each process owns: workload (default), or another of rmd-policies(7)", 0},
    {"priority", OPT_PRIORITY, "N", 0,
     "0 to 100, default 50: higher ones get their cores first; with a service only root may have "
     "more than 50", 0},
    {"smt", OPT_SMT, "HOW", 0,
     "hardware threads of a physical core: each is a core of its own (default), all go together "
     "(core), or only the first is used (first)", 0},
    {"reclaim-bound", OPT_BOUND, "US", 0,
     "an owner takes its core by force after US microseconds (default 5000)", 0},
    {"socket", OPT_SOCKET, "S", 0,
     "use the resource manager at S (a path, or @NAME) and start none", 0},
    {"off", OPT_OFF, NULL, 0, "run the command as if invade were not there", 0},
    {"verbose", 'v', NULL, 0, "print on stderr what invade does", 0},
    {0}};

void invade_say(const char *format, ...)
{
    char line[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "invade: %s\n", line);
}

static unsigned number(struct argp_state *state, const char *option, const char *arg, unsigned most)
{
    unsigned n = 1;
    if (!rmd_number(arg, 1, most, &n))
        argp_error(state, "--%s: '%s' is not a number from 1 to %u", option, arg, most);
    return n;
}

/* Is it a list of parameters that --tune knows, with commas between them? */
static bool is_tune_list(const char *list)
{
    static const char *const known[] = {"team", "spin", "poll"};
    for (const char *word = list;; word = strchr(word, ',') + 1) {
        bool right = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            right = right || (strcspn(word, ",") == strlen(known[i]) && !strncmp(word, known[i], strlen(known[i])));
        if (!right || !strchr(word, ','))
            return right;
    }
}

/* Is the word after an option, whose file may follow after =, the command? */
static bool command_follows(const struct argp_state *state, const char *file)
{
    return !file && state->next < state->argc && state->argv[state->next][0] != '-';
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct invade_options *o = state->input;
    switch (key) {
    case OPT_REPORT:
        if (arg && !*arg)
            argp_error(state, "--report=: the name of the file is empty; leave out = for stderr");
        o->report = true;
        o->report_file = arg;
        o->after_report = command_follows(state, arg);
        return 0;
    case OPT_TRACE:
        if (!*arg)
            argp_error(state, "--trace=: the name of the file is empty");
        if (arg == state->argv[state->next - 1])
            argp_error(state, "--trace: its file follows after =, as in --trace=%s", arg);
        if (!strcmp(arg, INVADE_STDOUT))
            argp_error(state, "--trace=-: a trace needs a file");
        o->trace_file = arg;
        return 0;
    case OPT_COMPARE:
        o->compare = arg ? number(state, "compare", arg, INVADE_COMPARE_MOST)
                         : INVADE_COMPARE_DEFAULT;
        o->after_compare = !arg && state->next < state->argc &&
                           rmd_number(state->argv[state->next], 0, UINT_MAX, &(unsigned){0});
        return 0;
    case OPT_THREADS:
        o->threads = number(state, "threads", arg, 1 << 16);
        return 0;
    case OPT_LEARN:
        if (arg && !*arg)
            argp_error(state, "--learn=: the name of the file is empty; leave out = for your own one");
        o->learn = true;
        o->learn_file = arg;
        o->after_learn = command_follows(state, arg);
        return 0;
    case OPT_TEAM:
        if (strcmp(arg, "fixed") && strcmp(arg, "adaptive"))
            argp_error(state, "'%s' is no kind of team: use fixed or adaptive", arg);
        o->team = arg;
        return 0;
    case OPT_TUNE:
        o->tune = arg ? arg : "team,spin,poll";
        if (!is_tune_list(o->tune))
            argp_error(state, "--tune=%s: use a list of team, spin and poll, such as spin,poll", arg);
        return 0;
    case OPT_MPI_TASKS:
        o->mpi_tasks = true;
        return 0;
    case OPT_CORES:
        o->cores = arg;
        return 0;
    case OPT_EMULATE:
        if (!inv_speeds_parse(arg, INV_MAX_CORES, NULL))
            argp_error(state, "--emulate-cores: '%s' is not a number from 1 to %d, nor numbers with speeds from "
                              "0.01 to 1, such as 4x1.0,4x0.6", arg, INV_MAX_CORES);
        o->emulate = arg;
        return 0;
    case OPT_POLICY:
        if (!rmd_policy_named(arg))
            argp_error(state, "'%s' is no policy: use %s", arg, rmd_policy_names().text);
        o->policy = arg;
        return 0;
    case OPT_PRIORITY:
        if (!rmd_number(arg, 0, RMD_PRIORITY_MOST, &(unsigned){0}))
            argp_error(state, "--priority: '%s' is not a number from 0 to %d", arg, RMD_PRIORITY_MOST);
        o->priority = arg;
        return 0;
    case OPT_SMT:
        if (rmd_smt_named(arg) < 0)
            argp_error(state, "'%s' is not how threads are used: use " RMD_SMT_NAMES, arg);
        o->smt = arg;
        return 0;
    case OPT_BOUND:
        o->reclaim_bound_us = number(state, "reclaim-bound", arg, 60000000);
        return 0;
    case OPT_SOCKET:
        o->socket = arg;
        return 0;
    case OPT_OFF:
        o->off = true;
        return 0;
    case 'v':
        o->verbose = true;
        return 0;
    case ARGP_KEY_ARG: /* the command: what follows is its own */
        o->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!o->command)
            argp_error(state, "which command?");
        if (o->socket && (o->emulate || o->policy || o->smt || o->reclaim_bound_us))
            argp_error(state, "with --socket the resource manager is there already: "
                              "--emulate-cores, --policy, --smt and --reclaim-bound are its own");
        if (o->cores && o->emulate)
            argp_error(state, "--cores and --emulate-cores exclude each other: use one");
        if (o->compare && (o->report || o->trace_file))
            argp_error(state, "--compare measures runs without --report and --trace, which take "
                              "time: use them in a run of their own");
        if (o->learn && o->threads)
            argp_error(state, "--learn finds the size of teams, which --threads gives: use one");
        if (o->learn && o->tune)
            argp_error(state, "--learn times runs with one team size, and --tune changes it in the run: use one");
        if (o->learn && o->compare)
            argp_error(state, "--compare and --learn: both time runs of the command; let --learn finish first, and "
                              "compare with the --threads that it says");
        if (o->learn && o->trace_file)
            argp_error(state, "--learn measures runs without --trace, which takes time: use it in a run of its own");
        if (o->compare && o->off)
            argp_error(state, "--compare and --off: there would be nothing to compare");
        if (o->compare && o->emulate)
            argp_error(state, "--compare and --emulate-cores: the stock run would have other "
                              "cores");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

enum { LIST_BYTES = 256 };

static const char *list_of(const struct inv_cpus *cpus, char text[LIST_BYTES])
{
    inv_cpulist_print(cpus, text, LIST_BYTES);
    return text;
}

/* Ends invade if it may not use some of the listed CPUs.  In a rank of a job that is no error: its
 * launcher has bound it, or its node has other CPUs than the node for which the list was
 * written. */
static void demand_all(const char *list, const struct inv_cpus *listed,
                       const struct inv_cpus *allowed)
{
    char job[32], missing[LIST_BYTES], ours[LIST_BYTES];
    struct inv_cpus both, absent;
    inv_cpus_and(&both, listed, allowed);
    inv_cpus_xor(&absent, listed, &both);
    if (!inv_cpus_count(&absent) || inv_job_name(job, sizeof job))
        return;
    invade_say("--cores=%s: CPU%s %s %s not there, or not ours to use: %s %s",
               list, rmd_plural((unsigned)inv_cpus_count(&absent), "s"), list_of(&absent, missing),
               inv_cpus_count(&absent) == 1 ? "is" : "are", list_of(allowed, ours),
               inv_cpus_count(allowed) == 1 ? "is" : "are");
    exit(INVADE_FAILED);
}

/* Restricts invade, and so rmd and the command, to the CPUs that the user has named. */
static void restrict_cores(const char *list)
{
    struct inv_cpus listed, allowed;
    if (inv_cpulist_parse(list, &listed)) {
        invade_say("--cores=%s is not a list of CPUs such as 0-3,8", list);
        exit(INVADE_FAILED);
    }
    if (!inv_cpus_get(0, &allowed)) {
        demand_all(list, &listed, &allowed);
        inv_cpus_and(&listed, &listed, &allowed);
    }
    if (!inv_cpus_count(&listed) || inv_cpus_set(0, &listed)) {
        invade_say("--cores=%s: none of these CPUs is ours to use (taskset -cp $$ shows which are)",
                   list);
        exit(INVADE_FAILED);
    }
}

/* Are there options that only a private resource manager can have? */
static bool wants_its_own(const struct invade_options *o)
{
    return o->cores || o->emulate || o->policy || o->smt || o->reclaim_bound_us;
}

/* Finds a resource manager that runs already: that of the surrounding invade, or the machine's
 * service. */
static bool find_running(struct invade_manager *m, const struct invade_options *o)
{
    const char *outer = getenv("INVASIVE_SOCKET");
    if (wants_its_own(o))
        return false;
    if (!outer || !*outer)
        return false;
    if (invade_use(m, outer)) {
        if (!getenv("INVASIVE_LAUNCH"))
            invade_name_launch(m, o);
        return true;
    }
    char unfit[INV_SOCKET_UNFIT];
    if (inv_socket_unfit(outer, unfit))
        invade_say("%s: set INVASIVE_SOCKET to another one.", unfit);
    return false;
}

enum service { SERVICE_USED, SERVICE_NONE, SERVICE_CLOSED };

/* Finds the machine's service.  The cores of a service that does not serve this user are its
 * users': a private resource manager would give them out once more, and pin our threads beside
 * theirs. */
static enum service find_service(struct invade_manager *m)
{
    if (invade_use(m, SERVICE))
        return SERVICE_USED;
    if (errno == ENOENT || errno == ENOTDIR || errno == ECONNREFUSED)
        return SERVICE_NONE;
    invade_say("cannot reach rmd at %s (%s)%s Running unmanaged; --cores makes one of its own.",
               SERVICE, strerror(errno),
               errno == EACCES || errno == EPERM ? ": is your user in group invasive?" : ".");
    return SERVICE_CLOSED;
}

static bool find_manager(struct invade_manager *m, struct invade_paths *paths,
                         const struct invade_options *o)
{
    if (o->socket) {
        invade_name_launch(m, o);
        if (invade_use(m, o->socket))
            return true;
        char unfit[INV_SOCKET_UNFIT];
        if (inv_socket_unfit(o->socket, unfit)) {
            invade_say("%s: use --socket with another one. Running unmanaged.", unfit);
            return false;
        }
        invade_say("cannot reach rmd at %s (%s): %s? Running unmanaged.", o->socket,
                   strerror(errno),
                   errno == EACCES || errno == EPERM ? "does it serve your user, or its group"
                                                     : "is it running");
        return false;
    }
    if (find_running(m, o))
        return true;
    if (!wants_its_own(o) && invade_launched_elsewhere(m))
        return invade_find_rmd(paths) && invade_use_node(m, paths->rmd);
    enum service service = wants_its_own(o) ? SERVICE_NONE : find_service(m);
    if (service == SERVICE_USED) {
        invade_name_launch(m, o);
        if (o->priority && atoi(o->priority) > RMD_PRIORITY && geteuid())
            invade_say("--priority=%s: only root may have more than %d of a service, which is what "
                       "holds", o->priority, RMD_PRIORITY);
    }
    if (service != SERVICE_NONE)
        return service == SERVICE_USED;
    if (!invade_find_rmd(paths))
        return false;
    if (invade_name_job(m, o)) /* the other ranks of this node have an invade each, too */
        return invade_use_node(m, paths->rmd);
    if (!invade_start(m, paths->rmd, o))
        return false;
    invade_name_launch(m, o);
    return true;
}

/* Opens the files of the report and of the trace (NULL: no trace) before anything in them is
 * overwritten.  False: the user has been told why not. */
static bool open_files(struct invade_report *report, struct rmd_trace_file *trace,
                       const struct invade_options *o)
{
    if (trace && !invade_trace_open(trace, o))
        return false;
    /* of a new one only once the trace is open */
    bool one = o->trace_file && o->report_file && inv_same_file(o->trace_file, o->report_file);
    if (one)
        invade_say("--report=%s and --trace=%s are one file: the report would take the trace's "
                   "place; use two names", o->report_file, o->trace_file);
    if (!one && invade_report_open(report, o))
        return true;
    if (trace)
        rmd_trace_file_discard(trace);
    return false;
}

/* Does the variable INVASIVE switch management off? */
static bool environment_says_off(void)
{
    const char *mode = getenv("INVASIVE");
    bool off = mode && !strcmp(mode, "off");
    if (mode && *mode && !off)
        invade_say("INVASIVE=%s in the environment means nothing: it is off, or not set", mode);
    return off;
}

static void run_unmanaged(const struct invade_options *o, struct invade_report *report,
                          struct rmd_trace_file *trace)
{
    unsetenv("INVASIVE_SOCKET"); /* the command must not look for an rmd that invade cannot reach */
    unsetenv("INVASIVE_LAUNCH");
    unsetenv("INVASIVE_CORES");
    unsetenv("INVASIVE_UNEVEN");
    unsetenv("INVASIVE_REPORT");
    unsetenv(INV_STOCK_VARIABLE);
    rmd_trace_file_discard(trace);
    invade_report_unmanaged(report, o->command);
    invade_exec(o);
}

struct run {
    struct invade_report *report;
    const struct invade_manager *manager;
    char **command;
};

/* Writes the report early: SIGKILL may come next. */
static void report_so_far(void *argument)
{
    const struct run *run = argument;
    if (run->report->ours)
        invade_report_write(run->report, run->manager, run->command, INVADE_STILL_RUNS);
}

static void run_off(const struct invade_options *o)
{
    struct invade_report report;
    if (!open_files(&report, NULL, o))
        exit(INVADE_FAILED);
    invade_report_unmanaged(&report, o->command); /* not the one of the run before */
    invade_exec(o);
}

static void run_managed(const struct invade_options *o) __attribute__((noreturn));
static void run_managed(const struct invade_options *given)
{
    struct invade_options options = *given, *o = &options;
    struct invade_paths paths = {0};
    struct invade_manager manager = {.control = -1};
    struct rmd_trace_file trace = {.fd = -1};
    struct invade_report report;
    if (!open_files(&report, &trace, o))
        exit(INVADE_FAILED);
    if (!invade_find(&paths) || !find_manager(&manager, &paths, o))
        run_unmanaged(o, &report, &trace);
    if (o->verbose)
        invade_say("%s rmd at %s, %u cores", manager.pid ? "private" : "using the", manager.socket,
                   manager.ncores);
    invade_learn_begin(o, manager.ncores);
    if (!invade_environment(&paths, &manager, o, &report)) {
        invade_stop(&manager);
        run_unmanaged(o, &report, &trace);
    }
    bool traced = invade_trace_start(&trace, &manager);
    if (!manager.pid && !report.ours && !traced && !o->learn)
        invade_exec(o);
    report.before = invade_load_now(&manager);
    struct run run = {&report, &manager, o->command};
    uint64_t begin_ns = inv_now_ns();
    int status = invade_run(o, invade_exec, report_so_far, &run);
    double seconds = 1e-9 * (double)(inv_now_ns() - begin_ns);
    report.traced = invade_trace_stop(&trace, &manager, o) ? &trace : NULL;
    if (report.ours || report.traced)
        invade_report_write(&report, &manager, o->command, status);
    invade_learn_end(o, &report, &manager, status, seconds);
    invade_stop(&manager);
    invade_end_as(status);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = argp_options, .parser = parse, .args_doc = "[--] COMMAND [ARGS...]",
        .doc = "invade - runs a command so that its processes share their cores\v"
               "Example: invade --report mpiexec -n 2 ./app\n\n"
               "INVASIVE=off in the environment is the same as --off. See invade(1)."};
    struct invade_options o = {0};
    invade_take_signals();
    argp_program_version = "invade " PACKAGE_VERSION;
    argp_err_exit_status = INVADE_FAILED;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);

    if (o.off)
        setenv("INVASIVE", "off", 1);
    bool off = environment_says_off();
    if (off && o.compare) {
        invade_say("--compare and INVASIVE=off: there would be nothing to compare");
        exit(INVADE_FAILED);
    }
    if (off)
        run_off(&o);
    if (o.cores)
        restrict_cores(o.cores); /* of a comparison: in all its runs */
    if (o.compare)
        invade_compare(&o, run_managed);
    run_managed(&o);
}
