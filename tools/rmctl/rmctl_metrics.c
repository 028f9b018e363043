/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_metrics.c - rmctl metrics: the text that rmd makes, or its numbers as JSON. */
#define _GNU_SOURCE
#include "client/client_control.h"
#include "tools/rmctl/rmctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {name: value...} of name="value",name="value"...; text is changed. */
static json_t *labels_json(char *text)
{
    json_t *labels = json_object();
    while (text && *text) {
        char *equals = strchr(text, '='), *to, *from;
        if (!equals || equals[1] != '"')
            break;
        *equals = '\0';
        char *value = to = from = equals + 2;
        for (; *from && *from != '"'; from++) {
            if (*from == '\\' && from[1])
                from++;
            *to++ = *from;
        }
        char *next = *from ? from + 1 : from;
        *to = '\0';
        json_object_set_new(labels, text, json_string(value));
        text = *next == ',' ? next + 1 : next;
    }
    return labels;
}

/* A line such as NAME{LABELS} VALUE; comments are none. */
static void add_line(json_t *samples, char *line)
{
    char *space = strrchr(line, ' ');
    if (*line == '#' || !space)
        return;
    *space = '\0';
    char *brace = strchr(line, '{'), *end = brace ? strrchr(brace, '}') : NULL;
    if (end)
        *brace = *end = '\0';
    json_array_append_new(samples, json_pack("{ss so sf}", "name", line, "labels",
                                             labels_json(end ? brace + 1 : NULL), "value",
                                             strtod(space + 1, NULL)));
}

static int run_metrics(int argc, char **argv)
{
    struct rmctl_sockets s;
    rmctl_parse(argc, argv, NULL, NULL, "",
                "Counters, in Prometheus' text format: of all users if you run rmd or are root, "
                "else yours.",
                NULL);
    const char *socket = rmctl_find_one(&s);
    char *text = socket ? rmd_client_metrics(socket) : NULL, *rest = text;
    if (!text) {
        if (socket)
            rmctl_complain("ask", socket);
        return RMCTL_FAILED;
    }
    int status = RMCTL_OK;
    if (rmctl_common.json) {
        json_t *samples = json_array();
        for (char *line; (line = strsep(&rest, "\n")) != NULL;)
            add_line(samples, line);
        status = rmctl_print_json(json_pack("{ss so}", "socket", socket, "samples", samples));
    } else {
        fputs(text, stdout);
    }
    free(text);
    return status;
}

const struct rmctl_command rmctl_metrics_command = {
    "metrics", "counters, in Prometheus' text format", run_metrics, NULL};
