/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl.h - the commands of rmctl, and what they have in common.  Each command has a file,
 * rmctl_NAME.c, and its name in the list below.
 */
#ifndef RMCTL_H
#define RMCTL_H

#include "client/client.h"

#include <argp.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

/* Exit codes. */
enum {
    RMCTL_OK = 0,
    RMCTL_FAILED = 1,  /* the command has done nothing, or not everywhere */
    RMCTL_NOT_YET = 2, /* the command is in force, but has not had its effect in time */
};

struct rmctl_command {
    const char *name, *about; /* about NULL: --help does not list it */
    int (*run)(int argc, char **argv); /* argv[0] is its name; returns an exit code */
    const struct argp_option *options; /* its own, for completion; may be NULL */
};

/* All of them, in the order in which the help shows them. */
#define RMCTL_COMMANDS(COMMAND)                                                                    \
    COMMAND(status)                                                                                \
    COMMAND(top)                                                                                   \
    COMMAND(policy)                                                                                \
    COMMAND(shrink)                                                                                \
    COMMAND(expand)                                                                                \
    COMMAND(pin)                                                                                   \
    COMMAND(suspend)                                                                               \
    COMMAND(resume)                                                                                \
    COMMAND(priority)                                                                              \
    COMMAND(limit)                                                                                 \
    COMMAND(drain)                                                                                 \
    COMMAND(power)                                                                                 \
    COMMAND(events)                                                                                \
    COMMAND(trace)                                                                                 \
    COMMAND(metrics)                                                                               \
    COMMAND(simulate)                                                                              \
    COMMAND(help)                                                                                  \
    COMMAND(complete)
#define RMCTL_DECLARE(name) extern const struct rmctl_command rmctl_##name##_command;
RMCTL_COMMANDS(RMCTL_DECLARE)
#undef RMCTL_DECLARE
extern const struct rmctl_command *const rmctl_commands[]; /* the last is NULL */

/* The common options, written by their parser (and by list_sockets of rmctl_complete.c, which
 * restores them), and what has been printed. */
extern struct rmctl_common {
    const char *socket; /* NULL: not given */
    bool json;
    bool error_is_printed; /* as JSON; writer: rmctl_print_json */
    volatile sig_atomic_t end_signal_came; /* writer: the handler of signals (rmctl_top.c) */
    /* What that handler writes the waits of `top` read: a signal that comes just before a wait
     * begins is not slept through. */
    int end_pipe[2];
} rmctl_common;
extern const struct argp rmctl_common_argp;

/* Parses the options and arguments of a command: its own, by `parse` with `input`, and the common
 * ones.  Ends the program with a message after an error.  options and parse may be NULL. */
void rmctl_parse(int argc, char **argv, const struct argp_option *options, argp_parser_t parse,
                 const char *arguments, const char *about, void *input);

/* --- which rmd (rmctl_find.c) */

enum { RMCTL_SOCKETS = 256 };
struct rmctl_sockets {
    unsigned count;
    char name[RMCTL_SOCKETS][128]; /* the service first */
    bool told;                     /* --socket or INVASIVE_SOCKET names it */
};
/* Finds the sockets of the rmds that may be asked.  False: there is none, which stderr has been
 * told. */
bool rmctl_find(struct rmctl_sockets *sockets);
/* The socket for a command about a whole machine.  NULL: stderr has been told why there is none. */
const char *rmctl_find_one(struct rmctl_sockets *sockets);
/* Finds the sockets of the rmds that may be asked about this user; about another user than ours
 * only the service's.  False: as rmctl_find. */
bool rmctl_find_for(struct rmctl_sockets *sockets, uint32_t uid);
/* Prints, by errno, that the rmd at `name` could not be asked to do `what`.  Returns false. */
bool rmctl_complain(const char *what, const char *name);
/* The same; with rmd's own reason for refusing this user, if it has given one. */
bool rmctl_complain_of(const char *what, const char *name, const struct rmd_client_user *of);
/* The user that an option means: uid, or with INV_UNSAID our own. */
uint32_t rmctl_meant(uint32_t uid);
/* Is that another user than ours? */
bool rmctl_of_another(uint32_t uid);

/* Commands that operators may give about another user. */
enum { RMCTL_USER_KEY = 512 };
#define RMCTL_USER_OPTION(about) {"user", RMCTL_USER_KEY, "NAME", 0, about, 0}
/* The user of this name or number; if there is none, the program ends with a message. */
uint32_t rmctl_user(struct argp_state *state, const char *text);

/* A whole number from `least` to `most`; otherwise the program ends with a message. */
unsigned rmctl_number(struct argp_state *state, const char *what, const char *text, unsigned least,
                      unsigned most);

/* Prints a JSON value on a line, and releases it.  Returns an exit code.  With --json a command
 * that fails prints the reason in a member "error": of its own value, or of a value on another
 * line. */
int rmctl_print_json(json_t *value);

#endif
