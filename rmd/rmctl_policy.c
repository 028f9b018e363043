/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_policy.c - rmctl policy: which one decides, and which one is to. */
#define _GNU_SOURCE
#include "client.h"
#include "policy.h"
#include "rmctl.h"

#include <stdio.h>
#include <string.h>

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **chosen = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*chosen)
        argp_error(state, "one policy: %s or %s?", *chosen, arg);
    if (!rmd_policy_named(arg))
        argp_error(state, "'%s' is no policy: use %s", arg, rmd_policy_names());
    *chosen = arg;
    return 0;
}

static void print_policy(const char *socket, const char *now, bool all)
{
    printf("domain %s: policy %s\n", socket, now);
    for (const struct rmd_policy *p = rmd_policies; p->name && all; p++)
        printf("%c %-13s %s\n", strcmp(p->name, now) ? ' ' : '*', p->name, p->about);
}

static json_t *all_policies(void)
{
    json_t *all = json_object();
    for (const struct rmd_policy *p = rmd_policies; p->name; p++)
        json_object_set_new(all, p->name, json_string(p->about));
    return all;
}

/* One that has ended meanwhile is of no interest, unless it is asked for, or should have obeyed. */
static bool complain(const struct rmctl_sockets *sockets, const char *socket, const char *chosen)
{
    if (chosen || sockets->count == 1 || sockets->told)
        rmctl_complain(chosen ? "tell" : "look into", socket);
    return !chosen;
}

int rmctl_policy(int argc, char **argv)
{
    static struct rmctl_sockets sockets;
    const char *chosen = NULL;
    bool good = true;
    rmctl_parse(argc, argv, NULL, parse, "[NAME]",
                "By which policy cores are divided; with NAME, by which from now on.", &chosen);
    if (!rmctl_find(&sockets))
        return RMCTL_FAILED;
    json_t *domains = json_array();
    for (unsigned i = 0; i < sockets.count; i++) {
        char now[INV_NAME_BYTES];
        if (!rmd_client_policy(sockets.name[i], chosen, now)) {
            good &= complain(&sockets, sockets.name[i], chosen);
            continue;
        }
        json_array_append_new(domains,
                              json_pack("{ss ss}", "socket", sockets.name[i], "policy", now));
        if (!rmctl_common.json)
            print_policy(sockets.name[i], now, !chosen);
    }
    good &= json_array_size(domains) > 0;
    if (!json_array_size(domains) || !rmctl_common.json) {
        json_decref(domains);
        return good ? RMCTL_OK : RMCTL_FAILED;
    }
    int printed =
        rmctl_print_json(json_pack("{so so}", "domains", domains, "policies", all_policies()));
    return good ? printed : RMCTL_FAILED;
}
