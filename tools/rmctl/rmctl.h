/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl.h - what the commands of rmctl have in common.  Each stands in a file,
 * rmctl_NAME.c, and in the list below.
 */
#ifndef RMCTL_H
#define RMCTL_H

#include "client/client.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

/* Exit codes. */
enum {
    RMCTL_OK = 0,
    RMCTL_FAILED = 1,  /* nothing has been done, or not everywhere */
    RMCTL_NOT_YET = 2, /* it is in force, but has not had its effect in time */
};

struct rmctl_command {
    const char *name, *about; /* about NULL: not for people */
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

/* What all commands have in common: options, whose writer is their parser (and list_sockets of
 * rmctl_complete.c for a moment), and what has been printed. */
extern struct rmctl_common {
    const char *socket; /* NULL: not said */
    bool json;
    bool error_is_printed; /* as JSON; writer: rmctl_print_json */
} rmctl_common;
extern const struct argp rmctl_common_argp;

/* Options and arguments of a command: its own, parsed by `parse` with `input`, and the common
 * ones.  Ends the program where something is wrong.  options and parse may be NULL. */
void rmctl_parse(int argc, char **argv, const struct argp_option *options, argp_parser_t parse,
                 const char *arguments, const char *about, void *input);

/* --- which rmd (rmctl_find.c) */

enum { RMCTL_SOCKETS = 256 };
struct rmctl_sockets {
    unsigned count;
    char name[RMCTL_SOCKETS][128]; /* the service first */
    bool told;                     /* by --socket or INVASIVE_SOCKET */
};
/* Those that may be asked.  None: has said so. */
bool rmctl_find(struct rmctl_sockets *sockets);
/* The one that a command about a whole machine is for.  NULL: has said why. */
const char *rmctl_find_one(struct rmctl_sockets *sockets);
/* Those that may be asked about this user: about another one than ours the one of the machine.
 * None: has said so. */
bool rmctl_find_for(struct rmctl_sockets *sockets, uint32_t uid);
/* Says that `name` could not be asked, to do what, by errno.  Returns false. */
bool rmctl_complain(const char *what, const char *name);
/* The same, by what rmd has said of this user if it has. */
bool rmctl_complain_of(const char *what, const char *name, const struct rmd_client_user *of);
/* Which user it is; INV_UNSAID: ours. */
uint32_t rmctl_meant(uint32_t uid);
/* Is it another user than ours? */
bool rmctl_of_another(uint32_t uid);

/* Commands that operators may give about another user. */
enum { RMCTL_USER_KEY = 512 };
#define RMCTL_USER_OPTION(about) {"user", RMCTL_USER_KEY, "NAME", 0, about, 0}
/* The user of this name or number, or the program ends with what is allowed. */
uint32_t rmctl_user(struct argp_state *state, const char *text);

/* A whole number, or the program ends with what is allowed. */
unsigned rmctl_number(struct argp_state *state, const char *what, const char *text, unsigned least,
                      unsigned most);

/* Print a JSON value on a line, and let it go.  Returns an exit code.  With --json a command that
 * fails says why in a member "error"; where its own value has none, another line comes after it. */
int rmctl_print_json(json_t *value);

#endif
