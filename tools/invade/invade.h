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

/* What tells a program from others. */
struct invade_hash {
    char text[17];
    const char *of; /* the word of the command; NULL: none */
};

struct invade_options {
    char **command; /* NULL-terminated */
    const char *socket, *cores, *emulate, *policy, *smt, *team, *priority, *report_file, *trace_file;
    unsigned threads, reclaim_bound_us; /* 0: not given */
    bool report, mpi_tasks, off, verbose;
    bool learn;             /* --learn; while the command runs: how long it takes is to be remembered */
    const char *learn_file; /* NULL: the user's own */
    char default_learn_file[PATH_MAX]; /* the user's own */
    struct invade_hash hash;           /* of the program that --learn has looked at last */
    bool after_learn;       /* the command is the word after --learn: maybe meant as its file */
    bool after_report; /* the command is the word after --report: maybe meant as its file */
    unsigned compare;   /* runs of each kind; 0: no comparison */
    bool after_compare; /* the command is the number after --compare: maybe meant as that */
};

/* Where things are: in the build tree and installed alike. */
struct invade_paths {
    char rmd[4096];
    char preload[3][4096]; /* libinvasive, libgomp, what replaces functions */
};

/* The resource manager of this run. */
struct invade_manager {
    char socket[108]; /* "" when there is none */
    unsigned ncores;
    bool emulated;
    bool uneven; /* cores have several speeds */
    pid_t pid;   /* of a private one, else 0 */
    bool of_job; /* the ranks' of one job on this node, each of which has an invade */
    int control; /* closing it ends a private one, else -1 */
    char launch[INV_LAUNCH_BYTES]; /* INVASIVE_LAUNCH for the command; "" leaves it as it is */
};

/* CPU time until now, in seconds; see invade_others.c. */
struct invade_load {
    uint64_t now_ns;
    bool known;
    double busy, all;          /* of our cores: of all programs, and with idling */
    double children, managing; /* of the command when it has ended; of rmd and of us */
};

/* Standard output, as the name of a file; one that is called so is "./-". */
#define INVADE_STDOUT "-"
#define INVADE_STDOUT_JSON "-.json"

/* Where --report goes. */
struct invade_report {
    bool wanted; /* our processes are to keep records: INVASIVE_REPORT is ours to set */
    bool ours;   /* and we are to write the report; of ranks with an invade each, rank 0's is */
    struct rmd_trace_file *traced; /* gets it as well; NULL: no trace does */
    bool json;
    const char *file; /* NULL: stderr; INVADE_STDOUT or, as JSON, INVADE_STDOUT_JSON */
    FILE *text;       /* NULL: JSON, or nothing is wanted */
    bool begun;       /* there is a report in it */
    uint64_t launch;  /* by which our processes' records are known */
    uint64_t since_ns; /* CLOCK_MONOTONIC: processes that ended before are not ours */
    struct invade_load before; /* the command */
};

/* Prints a message for the user to stderr. */
void invade_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* invade_paths.c: find what invade needs, and rmd.  False: has said what is missing and where it
 * was sought. */
bool invade_find(struct invade_paths *paths);
bool invade_find_rmd(struct invade_paths *paths);
/* Set the variables that the libraries read.  False: has said why not. */
bool invade_environment(const struct invade_paths *paths, const struct invade_manager *manager,
                        const struct invade_options *options,
                        const struct invade_report *report);

/* invade_rmd.c: use an rmd that is there. */
bool invade_use(struct invade_manager *manager, const char *socket);
/* Start a private rmd. */
bool invade_start(struct invade_manager *manager, const char *rmd,
                  const struct invade_options *options);
/* End the private rmd, if there is one. */
void invade_stop(struct invade_manager *manager);

/* invade_node.c: give a new launch, which begins here, its name: manager->launch. */
void invade_name_launch(struct invade_manager *manager, const struct invade_options *options);
/* The same for the job of which we are a rank.  False: we are none. */
bool invade_name_job(struct invade_manager *manager, const struct invade_options *options);
/* Take over the name of the launch that began on another node.  False: there is none. */
bool invade_launched_elsewhere(struct invade_manager *manager);
/* Use the rmd of manager->launch on this node; start it if there is none.  False: has said why. */
bool invade_use_node(struct invade_manager *manager, const char *rmd);
/* The MPI rank that we are; 0 when we are none. */
int invade_rank(void);

/* What a child of ours does: be the command, or manage it.  Does not return. */
typedef void (*invade_become)(const struct invade_options *options) __attribute__((noreturn));

/* invade_run.c: set signals as waiting for children and writing reports need it.  Called first. */
void invade_take_signals(void);
/* Become the command, with our caller's dispositions of signals. */
void invade_exec(const struct invade_options *options) __attribute__((noreturn));
/* Run a child that calls `become`, and return its wait status.  Signals are blocked from then on.
 * told_to_end(argument) is called once if the child still runs a second after a SIGTERM. */
int invade_run(const struct invade_options *options, invade_become become,
               void (*told_to_end)(void *), void *argument);
/* The first signal that has told us to end; 0: none.  Between and after runs, as the next two. */
int invade_end_signal(void);
/* Wait for processes that became our children (PR_SET_CHILD_SUBREAPER), for patience_ns at most.
 * False: some still run, or a signal has told us to end. */
bool invade_reap(uint64_t patience_ns);
/* Set the signal mask as our caller had it. */
void invade_give_signals_back(void);
/* End as the command did: same exit code, same signal. */
void invade_end_as(int wait_status) __attribute__((noreturn));

/* invade_report.c: fill in the report, and open its file.  False: the file cannot be written, which
 * has been said. */
bool invade_report_open(struct invade_report *report, const struct invade_options *options);
/* Say in the report that the command ran unmanaged, so that there is nothing to report. */
void invade_report_unmanaged(struct invade_report *report, char **command);
/* Write the report.  status: of waitpid for the command, or INVADE_STILL_RUNS.  The call after that
 * replaces what a file has of the first one. */
void invade_report_write(struct invade_report *report, const struct invade_manager *manager,
                         char **command, int status);

/* The same file: fill the launch with what the resource manager knows of our processes; launch_free frees it.  False:
 * nothing, or no memory, which has been said; error is -1 when the resource manager cannot be asked, else 0. */
struct launch;
bool invade_report_fetch(const struct invade_report *report, const struct invade_manager *manager,
                         struct launch *launch, int *error);

/* invade_learn.c: choose options->threads (0: the default team) for this run on so many cores by
 * what earlier runs of the command have shown.  Prints what fails. */
void invade_learn_begin(struct invade_options *options, unsigned cores);
/* Remember how long the run took, in seconds, if its wait status is 0.  Prints what fails. */
void invade_learn_end(const struct invade_options *options, const struct invade_report *report,
                      const struct invade_manager *manager, int status, double seconds);

/* invade_json.c: put the object into the file, which has that mode then and is there as a whole or not at all.  False
 * with errno. */
struct json_t;
bool invade_json_replace(const char *file, mode_t mode, struct json_t *object);

/* invade_others.c: processor time of all processes that we have waited for, in seconds. */
double invade_cpu_of_children(void);
/* The same file: the load of our cores, as /proc/stat and the clocks show it now. */
struct invade_load invade_load_now(const struct invade_manager *manager);
/* Core-seconds that other programs had on our cores between two loads; negative: not known.
 *   cpu  CPU time that the command's processes have reported, in seconds */
double invade_load_of_others(const struct invade_load *before, const struct invade_load *after,
                             unsigned cores, double cpu);

/* invade_compare.c: run the command options->compare times without us and as often with us, where a
 * child calls `managed`; print the comparison, and end as the last run did. */
enum { INVADE_COMPARE_MOST = 1000, INVADE_COMPARE_DEFAULT = 3 };
void invade_compare(const struct invade_options *options, invade_become managed)
    __attribute__((noreturn));

/* invade_trace.c: open the file of the trace.  False: it cannot be written, which has been said.
 * True with file->fd -1: this invade writes none. */
bool invade_trace_open(struct rmd_trace_file *file, const struct invade_options *options);
/* Ask rmd to begin.  True: there is a trace.  Where rmd refuses, the file is discarded. */
bool invade_trace_start(struct rmd_trace_file *file, const struct invade_manager *manager);
/* Ask rmd to end it.  True: it is complete, and the file is still open. */
bool invade_trace_stop(struct rmd_trace_file *file, const struct invade_manager *manager,
                       const struct invade_options *options);
/* Add the last chunk of a complete trace, the report on its run as JSON, and close the file. */
void invade_trace_add_report(struct rmd_trace_file *file, const char *json);

#endif
