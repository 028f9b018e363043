/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_complete.c - rmctl complete: what the completions for the shells ask, so that they know
 * nothing themselves: words that may follow, one a line.
 */
#define _GNU_SOURCE
#include "client.h"
#include "policy.h"
#include "rmctl.h"
#include "rmctl_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void list_commands(void)
{
    for (const struct rmctl_command *c = rmctl_commands; c->name; c++)
        if (c->about)
            puts(c->name);
}

static void list_options(const char *command)
{
    for (const struct rmctl_command *c = rmctl_commands; c->name; c++)
        for (const struct argp_option *o = c->options;
             o && o->name && command && !strcmp(c->name, command); o++)
            printf("--%s%s\n", o->name, o->arg ? "=" : "");
    puts("--socket=\n--json\n--help");
}

static void list_processes(void)
{
    static struct rmctl_sockets s;
    static struct view view;
    if (!rmctl_find(&s))
        return;
    for (unsigned i = 0; i < s.count; i++) {
        struct inv_table *t = rmd_client_observe(s.name[i]);
        if (!t)
            continue;
        view_take(&view, t, s.name[i]);
        inv_table_unmap(t);
        for (unsigned p = 0; p < view.nprocs; p++)
            printf("%d\n", view.process[p].pid);
    }
}

/* complete commands | options COMMAND | arguments COMMAND */
int rmctl_complete(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *command = argc > 2 ? argv[2] : NULL;
    rmctl_common.json = false; /* it may be in a line that is completed */
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) /* in the middle of somebody's typing */
        return RMCTL_FAILED;
    close(nowhere);
    if (!strcmp(what, "commands"))
        list_commands();
    else if (!strcmp(what, "options"))
        list_options(command);
    else if (!strcmp(what, "arguments") && command && !strcmp(command, "policy"))
        for (const struct rmd_policy *p = rmd_policies; p->name; p++)
            puts(p->name);
    else if (!strcmp(what, "arguments") && command &&
             (!strcmp(command, "shrink") || !strcmp(command, "expand") ||
              !strcmp(command, "pin")))
        list_processes();
    return RMCTL_OK;
}
