/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl.c - looks into a running rmd, and tells it what to do: the table of commands.  To look, it
 * asks for the core table, maps it read-only and shows its contents at that instant.  That neither
 * stops nor disturbs a process.
 */
#define _GNU_SOURCE
#include "config.h"
#include "tools/rmctl/rmctl.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rmctl_common rmctl_common = {.end_pipe = {-1, -1}};

#define ENTRY(name) &rmctl_##name##_command,
const struct rmctl_command *const rmctl_commands[] = {RMCTL_COMMANDS(ENTRY) NULL};
#undef ENTRY

/* --- options of all commands */

static const struct argp_option common_options[] = {
    {"socket", 's', "S", 0,
     "the rmd at S (a path, or @NAME); default: $INVASIVE_SOCKET, else the service and every "
     "private one of yours",
     90},
    {"json", 'j', NULL, 0, "print JSON", 90},
    {0}};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    (void)state;
    switch (key) {
    case 's':
        rmctl_common.socket = arg;
        return 0;
    case 'j':
        rmctl_common.json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rmctl_common_argp = {.options = common_options, .parser = parse_common};

void rmctl_parse(int argc, char **argv, const struct argp_option *options, argp_parser_t parse,
                 const char *arguments, const char *about, void *input)
{
    const struct argp_child children[] = {{&rmctl_common_argp, 0, NULL, 90}, {0}};
    const struct argp argp = {options, parse, arguments, about, children, NULL, NULL};
    char name[64];
    snprintf(name, sizeof name, "rmctl %s", argv[0]);
    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, input);
}

unsigned rmctl_number(struct argp_state *state, const char *what, const char *text, unsigned least,
                      unsigned most)
{
    unsigned n = least;
    if (!rmd_number(text, least, most, &n))
        argp_error(state, "%s '%s': use a number from %u to %u", what, text, least, most);
    return n;
}

/* --- errors */

/* What has been written to stderr. */
struct complaints {
    char text[4096];
    size_t bytes; /* of it */
};

static ssize_t copy_complaint(void *cookie, const char *text, size_t bytes)
{
    struct complaints *all = cookie;
    for (size_t i = 0; i < bytes && all->bytes < sizeof all->text - 1; i++)
        all->text[all->bytes++] = text[i];
    return write(STDERR_FILENO, text, bytes);
}

/* Keeps a copy of all text that goes to stderr, from any function, for print_error. */
static void remember_complaints(struct complaints *all)
{
    FILE *tee = fopencookie(all, "w", (cookie_io_functions_t){.write = copy_complaint});
    if (!tee)
        return;
    setvbuf(tee, NULL, _IOLBF, 256);
    stderr = tee;
}

static int print_error(struct complaints *all)
{
    fflush(stderr);
    char *text = all->text + strspn(all->text, "\n");
    if (!strncmp(text, "rmctl: ", 7))
        text += 7;
    text[strcspn(text, "\n")] = '\0';
    return rmctl_print_json(json_pack("{ss}", "error", *text ? text : "no rmd has answered"));
}

/* Digits of numbers in JSON: so few that a double prints 36.014 as it is. */
enum { REAL_DIGITS = 12 };

int rmctl_print_json(json_t *value)
{
    rmctl_common.error_is_printed |= json_object_get(value, "error") != NULL;
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
    json_decref(value);
    if (!text) {
        fprintf(stderr, "rmctl: no memory\n");
        return RMCTL_FAILED;
    }
    puts(text);
    free(text);
    return fflush(stdout) ? RMCTL_FAILED : RMCTL_OK;
}

/* --- which command */

struct choice {
    const struct rmctl_command *command;
    int index; /* of its name, in argv */
};

static void list_commands(FILE *out)
{
    fprintf(out, "Commands, each with --help:\n");
    for (const struct rmctl_command *const *c = rmctl_commands; *c; c++)
        if ((*c)->about)
            fprintf(out, "  %-8s %s\n", (*c)->name, (*c)->about);
}

static char *with_commands(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA)
        return (char *)text;
    char *list = NULL;
    size_t bytes;
    FILE *out = open_memstream(&list, &bytes);
    if (out) {
        list_commands(out);
        fclose(out);
    }
    return list;
}

/* NULL: there is none of this name. */
static const struct rmctl_command *command_named(const char *name)
{
    for (const struct rmctl_command *const *c = rmctl_commands; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return NULL;
}

static error_t parse_command(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    choice->command = command_named(arg);
    if (!choice->command)
        argp_error(state, "there is no command '%s': rmctl help lists them", arg);
    choice->index = state->next - 1;
    state->next = state->argc; /* the rest is the command's */
    return 0;
}

static const struct argp_child children[] = {{&rmctl_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .parser = parse_command, .args_doc = "[COMMAND]", .children = children,
    .help_filter = with_commands,
    .doc = "rmctl - shows what a resource manager manages, and tells it what to do"};

/* --- rmctl help [COMMAND] */

static error_t parse_help(int key, char *arg, struct argp_state *state)
{
    const struct rmctl_command **about = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*about)
        argp_error(state, "'%s' is one argument too many", arg);
    *about = command_named(arg);
    if (!*about || !(*about)->about)
        argp_error(state, "there is no command '%s': rmctl help lists them", arg);
    return 0;
}

/* Of one command, or of all. */
static int help_json(const struct rmctl_command *one)
{
    json_t *list = json_array();
    for (const struct rmctl_command *const *c = rmctl_commands; *c; c++)
        if ((*c)->about && (!one || *c == one))
            json_array_append_new(list, json_pack("{ss ss}", "name", (*c)->name, "about",
                                                  (*c)->about));
    return rmctl_print_json(json_pack("{so}", "commands", list));
}

static int run_help(int argc, char **argv)
{
    const struct rmctl_command *about = NULL;
    rmctl_parse(argc, argv, NULL, parse_help, "[COMMAND]", "The commands, or how to use one.",
                &about);
    if (rmctl_common.json)
        return help_json(about);
    if (about && about->run != run_help) {
        char name[16], wanted[] = "--help", *words[] = {name, wanted, NULL};
        snprintf(name, sizeof name, "%s", about->name);
        return about->run(2, words);
    }
    argp_help(&argp, stdout, ARGP_HELP_STD_HELP & ~(ARGP_HELP_EXIT_OK | ARGP_HELP_EXIT_ERR),
              (char *)"rmctl");
    return RMCTL_OK;
}

const struct rmctl_command rmctl_help_command = {"help", "this, or how to use one of them", run_help,
                                                 NULL};

int main(int argc, char **argv)
{
    struct complaints complaints = {.bytes = 0};
    struct choice choice = {0};
    signal(SIGXFSZ, SIG_IGN); /* a file as large as allowed is an error of write */
    argp_program_version = "rmctl " PACKAGE_VERSION;
    remember_complaints(&complaints);
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
    char *status_words[] = {(char *)"status", NULL};
    int status = choice.command
                     ? choice.command->run(argc - choice.index, argv + choice.index)
                     : rmctl_status_command.run(1, status_words);
    if (status == RMCTL_FAILED && rmctl_common.json && !rmctl_common.error_is_printed)
        print_error(&complaints);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "rmctl: cannot write to standard output: %s\n", strerror(errno));
        status = RMCTL_FAILED;
    }
    exit(status); /* no return: what is left in stderr is still copied to `complaints` */
}
