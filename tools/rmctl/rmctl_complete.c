/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_complete.c - rmctl complete WORD...: called by the completions of the shells, which have no
 * words of their own.  The arguments are the words of a command line after "rmctl", up to the
 * cursor; the last one is being typed, and may be empty.  Prints the words that may replace it, or
 * (after the "=" of an option) its value, one a line; "/" stands for names of files.
 */
#define _GNU_SOURCE
#include "client/client.h"
#include "client/client_control.h"
#include "rmd/policy/policy.h"
#include "tools/rmctl/rmctl.h"
#include "tools/rmctl/rmctl_view.h"
#include "tools/rmctl/simulate/simulate.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A command line. */
struct line {
    const struct rmctl_command *command; /* NULL: none so far */
    const char *argument[8];             /* of the command, as far as they are complete */
    unsigned narguments;
    bool undo;
    const char *typed; /* the last word */
};

static const struct argp_option common[] = {{.name = "socket", .key = 's', .arg = "S"},
                                            {.name = "json", .key = 'j'},
                                            {.name = "help", .key = '?'},
                                            {0}};

/* --- words */

/* "one,two,thr" has been typed: `word` in place of the last one. */
static void list_item(const char *typed, const char *word)
{
    const char *comma = strrchr(typed, ',');
    printf("%.*s%s\n", comma ? (int)(comma + 1 - typed) : 0, typed, word);
}

static void list_commands(void)
{
    for (const struct rmctl_command *const *c = rmctl_commands; *c; c++)
        if ((*c)->about)
            puts((*c)->name);
}

static void print_options(const struct argp_option *o)
{
    for (; o && o->name; o++)
        printf("--%s%s\n", o->name, o->arg ? "=" : "");
}

static void list_users(const char *typed)
{
    (void)typed;
    for (const struct passwd *p; (p = getpwent()) != NULL;)
        puts(p->pw_name);
    endpwent();
}

static void list_schedules(const char *typed)
{
    list_item(typed, "static");
    list_item(typed, "sequence");
    list_item(typed, "lending");
    for (const struct rmd_policy *p = rmd_policies; p->name; p++)
        list_item(typed, p->name);
}

static void list_workloads(const char *typed)
{
    if (strchr(typed, ','))
        for (unsigned i = 0; sim_generate_number(i); i++) {
            char word[64];
            snprintf(word, sizeof word, "%s=", sim_generate_number(i));
            list_item(typed, word);
        }
    else
        for (unsigned i = 0; sim_generate_kind(i); i++)
            puts(sim_generate_kind(i));
}

static void list_sockets(const char *typed)
{
    struct rmctl_sockets s;
    const char *told = rmctl_common.socket;
    (void)typed;
    rmctl_common.socket = "";
    rmctl_find(&s);
    for (unsigned i = 0; i < s.count; i++)
        puts(s.name[i]);
    rmctl_common.socket = told;
    puts("/");
}

static void list_files(const char *typed)
{
    (void)typed;
    puts("/");
}

static void list_all(const char *typed)
{
    (void)typed;
    puts("all");
}

static void list_announce(const char *typed)
{
    (void)typed;
    puts("measured\nahead");
}

/* What may follow an option. */
static const struct {
    const char *option;
    void (*list)(const char *typed);
} values[] = {{"socket", list_sockets},       {"cores", list_all},
              {"job-cores", list_all},        {"user", list_users},
              {"workload", list_files},       {"generate", list_workloads},
              {"schedules", list_schedules},  {"announce", list_announce},
              {"picture", list_files},        {"series", list_files},
              {"write", list_files}};

static void list_values(const struct argp_option *o, const char *typed)
{
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].option, o->name))
            values[i].list(typed);
}

/* --- what there is now */

static void list_processes(void)
{
    struct rmctl_sockets s;
    struct view view;
    rmctl_find(&s);
    for (unsigned i = 0; i < s.count; i++) {
        struct inv_table *t = rmd_client_observe(s.name[i], NULL);
        if (!t)
            continue;
        view_read(&view, t, s.name[i]);
        inv_table_unmap(t);
        for (unsigned p = 0; p < view.nprocs; p++) {
            printf("%d\n", view.process[p].pid);
            if (view.process[p].rank >= 0)
                printf("rank:%d\n", view.process[p].rank);
        }
    }
}

/* Of the machine: all, those that are drained, or that are not. */
enum which { ALL, DRAINED, NOT_DRAINED };

static void list_cores(enum which which, const char *typed)
{
    struct rmctl_sockets s;
    const char *socket = rmctl_find_one(&s);
    struct inv_admin_snapshot *o = socket ? rmd_client_admin_snapshot(socket, INV_UNSAID) : NULL;
    for (unsigned c = 0; o && c < o->ncores; c++) {
        char word[16];
        snprintf(word, sizeof word, "%u", c);
        if (which == ALL || inv_set_has(o->drained, c) == (which == DRAINED))
            list_item(typed, word);
    }
    free(o);
}

static void list_counts(void)
{
    struct rmctl_sockets s;
    const char *socket = rmctl_find_one(&s);
    struct inv_admin_snapshot *o = socket ? rmd_client_admin_snapshot(socket, INV_UNSAID) : NULL;
    for (unsigned n = 1; o && n <= o->ncores; n++)
        printf("%u\n", n);
    free(o);
}

/* --- arguments of commands */

static void list_arguments(const struct line *l)
{
    const char *name = l->command->name;
    bool pin = !strcmp(name, "pin");
    bool of_process = pin || !strcmp(name, "shrink") || !strcmp(name, "expand");
    bool of_job = !strcmp(name, "suspend") || !strcmp(name, "resume") ||
                  !strcmp(name, "priority");
    if (l->narguments == 0 && !strcmp(name, "policy"))
        for (const struct rmd_policy *p = rmd_policies; p->name; p++)
            puts(p->name);
    else if (l->narguments == 0 && !strcmp(name, "help"))
        list_commands();
    else if (l->narguments == 0 && !strcmp(name, "trace"))
        puts("start\nstop");
    else if (l->narguments == 1 && !strcmp(name, "trace") && !strcmp(l->argument[0], "start"))
        puts("/");
    else if (l->narguments == 0 && !strcmp(name, "drain"))
        list_cores(l->undo ? DRAINED : NOT_DRAINED, l->typed);
    else if (l->narguments == 0 && (of_process || of_job))
        list_processes();
    else if (l->narguments == 1 && pin)
        list_cores(ALL, l->typed);
    else if (l->narguments == 1 && of_process)
        list_counts();
}

/* --- the line */

/* The option of this name, or of this letter; a command's own go before those of all. */
static const struct argp_option *find_option(const struct line *l, const char *name, int key)
{
    const struct argp_option *lists[] = {l->command ? l->command->options : NULL, common};
    for (unsigned i = 0; i < 2; i++)
        for (const struct argp_option *o = lists[i]; o && o->name; o++)
            if (name ? strlen(o->name) == strcspn(name, "=") &&
                           !strncmp(o->name, name, strlen(o->name))
                     : o->key == key)
                return o;
    return NULL;
}

/* A word such as -s that wants the next one. */
static const struct argp_option *wants_value(const struct line *l, const char *word)
{
    if (word[0] != '-' || word[1] == '\0' || (word[1] == '-' && strchr(word, '=')))
        return NULL;
    const struct argp_option *o = word[1] == '-' ? find_option(l, word + 2, 0)
                                  : word[2]      ? NULL
                                                 : find_option(l, NULL, word[1]);
    return o && o->arg ? o : NULL;
}

static void apply_option(const struct argp_option *o, const char *value)
{
    if (!strcmp(o->name, "socket"))
        rmctl_common.socket = value;
}

static void parse_word(struct line *l, const char *word)
{
    if (word[0] == '-') {
        const char *equals = strchr(word, '=');
        const struct argp_option *o =
            word[1] == '-' && equals ? find_option(l, word + 2, 0) : NULL;
        if (o)
            apply_option(o, equals + 1);
        l->undo |= !strcmp(word, "--undo");
        return;
    }
    if (l->command) {
        if (l->narguments < sizeof l->argument / sizeof *l->argument)
            l->argument[l->narguments++] = word;
        return;
    }
    for (const struct rmctl_command *const *c = rmctl_commands; *c; c++)
        if (!strcmp((*c)->name, word))
            l->command = *c;
}

static void complete_line(int argc, char **argv)
{
    struct line l = {.typed = argv[argc - 1]};
    const struct argp_option *waiting = NULL;
    for (int i = 0; i < argc - 1; i++) {
        if (waiting) {
            apply_option(waiting, argv[i]);
            waiting = NULL;
        } else if (!(waiting = wants_value(&l, argv[i]))) {
            parse_word(&l, argv[i]);
        }
    }
    const char *equals = strchr(l.typed, '=');
    const struct argp_option *o = waiting;
    if (!o && equals && !strncmp(l.typed, "--", 2) && (o = find_option(&l, l.typed + 2, 0)))
        l.typed = equals + 1;
    if (o) {
        list_values(o, l.typed);
    } else if (*l.typed == '-') {
        print_options(l.command ? l.command->options : NULL);
        print_options(common);
    } else if (!l.command) {
        list_commands();
    } else {
        list_arguments(&l);
    }
}

static int run_complete(int argc, char **argv)
{
    rmctl_common.json = false; /* it may be in the line that is completed */
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) /* messages would disturb the typing */
        return RMCTL_FAILED;
    close(nowhere);
    if (argc > 1)
        complete_line(argc - 1, argv + 1);
    return RMCTL_OK;
}

/* For the shells. */
const struct rmctl_command rmctl_complete_command = {"complete", NULL, run_complete, NULL};
