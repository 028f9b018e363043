/* SPDX-License-Identifier: GPL-3.0-or-later */
/* invade.h - the parts of the launcher, see invade.c. */
#ifndef INVADE_H
#define INVADE_H

#include "client/trace_client.h"
#include "libinvasive/launch/launch.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { INVADE_FAILED = 125, INVADE_CANNOT_RUN = 126, INVADE_NOT_FOUND = 127 };

/* A wait status of a command that has not ended: neither WIFEXITED nor WIFSIGNALED. */
enum { INVADE_STILL_RUNS = 0xffff };

/* A hash of a program's file. */
struct invade_hash {
    char text[17];
    const char *of; /* the word of the command that names the program; NULL: none */
};

struct invade_options {
    char **command; /* NULL-terminated */
    const char *socket, *cores, *emulate, *policy, *smt, *team, *tune, *priority, *report_file, *trace_file;
    unsigned threads, reclaim_bound_us; /* 0: not given */
    bool report, mpi_tasks, off, verbose;
    bool learn;             /* --learn; while the command runs: remember how long it takes */
    const char *learn_file; /* NULL: default_learn_file */
    char default_learn_file[PATH_MAX]; /* in the user's own directory */
    struct invade_hash hash;           /* of the program of the last invade_learn_begin */
    bool after_learn;   /* the command is the word after --learn, and may be meant as its file */
    bool after_report;  /* the command is the word after --report, and may be meant as its file */
    unsigned compare;   /* runs of each kind; 0: no comparison */
    bool after_compare; /* the command is a number after --compare, and may be meant as its
                           argument */
};

/* Paths of what invade uses, in a build tree or installed. */
struct invade_paths {
    char rmd[4096];
    char preload[3][4096]; /* libinvasive-process, libgomp, and the library that replaces
                              functions */
};

/* The resource manager of this run. */
struct invade_manager {
    char socket[108]; /* "" when there is none */
    unsigned ncores;
    bool emulated;
    bool uneven; /* cores have several speeds */
    pid_t pid;   /* of a private rmd, else 0 */
    bool of_job; /* it is for the ranks of one job on this node, each of which has an invade */
    int control; /* descriptor whose closing ends a private rmd, else -1 */
    char launch[INV_LAUNCH_BYTES]; /* INVASIVE_LAUNCH for the command; "" leaves it as it is */
};

/* CPU time until now, in seconds; see invade_others.c. */
struct invade_load {
    uint64_t now_ns;
    bool known;
    double busy, all;          /* of our cores: time of all programs; that and idle time */
    double children, managing; /* of the command, when it has ended; of rmd and invade */
};

/* The name for standard output in place of a file's.  (A file of that name is "./-".) */
#define INVADE_STDOUT "-"
#define INVADE_STDOUT_JSON "-.json"

/* Where --report goes. */
struct invade_report {
    bool wanted; /* the command's processes must keep records: invade sets INVASIVE_REPORT */
    bool ours;   /* this invade writes the report; if each rank has an invade, that of rank 0
                    does */
    struct rmd_trace_file *traced; /* the trace that gets the report, too; NULL: none */
    bool json;
    const char *file; /* NULL: stderr; INVADE_STDOUT or, as JSON, INVADE_STDOUT_JSON */
    FILE *text;       /* NULL: JSON, or no report is wanted */
    bool begun;       /* a report has been written to it */
    uint64_t launch;  /* number in the records of the command's processes */
    uint64_t since_ns; /* CLOCK_MONOTONIC: processes that ended before are not the command's */
    struct invade_load before; /* the load before the command */
};

/* Prints a message for the user to stderr. */
void invade_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In the comments below "the user has been told" means: by a line on stderr.
 *
 * invade_paths.c: these find the libraries and rmd.  False: the user has been told what is missing,
 * and where invade has looked for it. */
bool invade_find(struct invade_paths *paths);
bool invade_find_rmd(struct invade_paths *paths);
/* Sets the environment variables that the libraries read.  False: the user has been told why
 * not. */
bool invade_environment(const struct invade_paths *paths, const struct invade_manager *manager,
                        const struct invade_options *options,
                        const struct invade_report *report);

/* invade_rmd.c: uses the rmd that listens on `socket`.  False: the user has been told why not. */
bool invade_use(struct invade_manager *manager, const char *socket);
/* Starts a private rmd.  False: the user has been told why not. */
bool invade_start(struct invade_manager *manager, const char *rmd,
                  const struct invade_options *options);
/* Ends the private rmd, if there is one. */
void invade_stop(struct invade_manager *manager);

/* invade_node.c: names a new launch, which begins on this node: sets manager->launch. */
void invade_name_launch(struct invade_manager *manager, const struct invade_options *options);
/* The same for the MPI job of which this process is a rank.  False: it is no rank. */
bool invade_name_job(struct invade_manager *manager, const struct invade_options *options);
/* Takes over the name of a launch that began on another node.  False: there is none. */
bool invade_launched_elsewhere(struct invade_manager *manager);
/* Uses the rmd of manager->launch on this node; starts it if there is none.  False: the user has
 * been told why not. */
bool invade_use_node(struct invade_manager *manager, const char *rmd);
/* The MPI rank of this process; 0 when it is no rank. */
int invade_rank(void);

/* The work of a child of invade: becomes the command, or manages it.  Does not return. */
typedef void (*invade_become)(const struct invade_options *options) __attribute__((noreturn));

/* invade_run.c: sets signals as waiting for children and writing reports need it.  Called first. */
void invade_take_signals(void);
/* Becomes the command, with the signal dispositions of invade's caller. */
void invade_exec(const struct invade_options *options) __attribute__((noreturn));
/* Runs a child that calls `become`, and returns its wait status.  Signals are blocked from then on.
 * told_to_end(argument) is called once if the child still runs a second after a SIGTERM. */
int invade_run(const struct invade_options *options, invade_become become,
               void (*told_to_end)(void *), void *argument);
/* The next three are called between and after runs.
 * The first signal that has told invade to end; 0: none. */
int invade_end_signal(void);
/* Waits for processes that became children of invade (PR_SET_CHILD_SUBREAPER), for patience_ns at
 * most.  False: some still run, or a signal has told invade to end. */
bool invade_reap(uint64_t patience_ns);
/* Restores the signal mask of invade's caller. */
void invade_give_signals_back(void);
/* Ends as the command did: same exit code, same signal. */
void invade_end_as(int wait_status) __attribute__((noreturn));

/* invade_report.c: fills in the report, and opens its file.  False: the file cannot be written; the
 * user has been told. */
bool invade_report_open(struct invade_report *report, const struct invade_options *options);
/* Writes into the report that the command ran unmanaged, so that there is nothing to report. */
void invade_report_unmanaged(struct invade_report *report, char **command);
/* Writes the report.  status: of waitpid for the command, or INVADE_STILL_RUNS; a later call then
 * replaces the report in the file. */
void invade_report_write(struct invade_report *report, const struct invade_manager *manager,
                         char **command, int status);

/* Fills the launch with what rmd knows of the command's processes; launch_free frees it.  False:
 * rmd knows none, or there is no memory, and the user has been told; *error is -1 if rmd cannot be
 * asked, else 0. */
struct launch;
bool invade_report_fetch(const struct invade_report *report, const struct invade_manager *manager,
                         struct launch *launch, int *error);

/* invade_learn.c: chooses options->threads (0: the default team) for this run on `cores` cores, by
 * the times of earlier runs of the command.  Errors are printed. */
void invade_learn_begin(struct invade_options *options, unsigned cores);
/* Remembers how long the run took, in seconds, if its wait status is 0.  Errors are printed. */
void invade_learn_end(const struct invade_options *options, const struct invade_report *report,
                      const struct invade_manager *manager, int status, double seconds);

/* invade_json.c: writes the object to the file, which then has this mode and exists as a whole or
 * not at all.  False with errno. */
struct json_t;
bool invade_json_replace(const char *file, mode_t mode, struct json_t *object);

/* invade_others.c: processor time of all processes that invade has waited for, in seconds. */
double invade_cpu_of_children(void);
/* The load of our cores until now, by /proc/stat and the clocks. */
struct invade_load invade_load_now(const struct invade_manager *manager);
/* Core-seconds that other programs had on our cores between two loads; negative: unknown.
 *   cpu  CPU time that the command's processes have reported, in seconds */
double invade_load_of_others(const struct invade_load *before, const struct invade_load *after,
                             unsigned cores, double cpu);

/* invade_compare.c: runs the command options->compare times unmanaged and as many times managed,
 * where a child calls `managed`; prints the comparison, and ends as the last run did. */
enum { INVADE_COMPARE_MOST = 1000, INVADE_COMPARE_DEFAULT = 3 };
void invade_compare(const struct invade_options *options, invade_become managed)
    __attribute__((noreturn));

/* invade_trace.c: opens the file of the trace.  False: it cannot be written; the user has been
 * told.  True with file->fd -1: this invade writes no trace. */
bool invade_trace_open(struct rmd_trace_file *file, const struct invade_options *options);
/* Asks rmd to begin the trace.  True: it has.  If rmd refuses, the file is discarded. */
bool invade_trace_start(struct rmd_trace_file *file, const struct invade_manager *manager);
/* Asks rmd to end the trace.  True: the trace is complete, and the file is still open. */
bool invade_trace_stop(struct rmd_trace_file *file, const struct invade_manager *manager,
                       const struct invade_options *options);
/* Adds the last chunk to a complete trace, the report on its run as JSON, and closes the file. */
void invade_trace_add_report(struct rmd_trace_file *file, const char *json);

#endif
