/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_policy.c - rmctl policy: prints which policy decides, or chooses another one. */
#define _GNU_SOURCE
#include "client/client.h"
#include "rmd/policy/policy.h"
#include "tools/rmctl/rmctl.h"

#include <stdio.h>
#include <string.h>

static const struct argp_option policy_options[] = {
    RMCTL_USER_OPTION("of this user, for an operator; default: your own"), {0}};

/* The arguments of the command line. */
struct words {
    const char *chosen; /* NULL: look only */
    struct rmd_client_user of;
};

static error_t parse_policy_option(int key, char *arg, struct argp_state *state)
{
    struct words *w = state->input;
    if (key == RMCTL_USER_KEY) {
        w->of.uid = rmctl_user(state, arg);
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (w->chosen)
        argp_error(state, "one policy: %s or %s?", w->chosen, arg);
    if (!rmd_policy_named(arg))
        argp_error(state, "'%s' is no policy: use %s", arg, rmd_policy_names().text);
    w->chosen = arg;
    return 0;
}

static void print_policy(const char *socket, const struct words *w, const char *now)
{
    bool all = !w->chosen;
    printf("domain %s: ", socket);
    if (rmctl_of_another(w->of.uid))
        printf("user %u, ", (unsigned)w->of.uid);
    printf("policy %s\n", now);
    for (const struct rmd_policy *p = rmd_policies; p->name && all; p++)
        printf("%c %-13s %s\n", strcmp(p->name, now) ? ' ' : '*', p->name, p->about);
}

static json_t *policies_json(void)
{
    json_t *all = json_object();
    for (const struct rmd_policy *p = rmd_policies; p->name; p++)
        json_object_set_new(all, p->name, json_string(p->about));
    return all;
}

/* One that has ended meanwhile is of no interest, unless it is asked for, or should have obeyed. */
static bool complain_if_needed(const struct rmctl_sockets *sockets, const char *socket,
                               const struct words *w)
{
    if (w->chosen || sockets->count == 1 || sockets->told)
        rmctl_complain_of(w->chosen ? "tell" : "look into", socket, &w->of);
    return !w->chosen;
}

static int run_policy(int argc, char **argv)
{
    struct rmctl_sockets sockets;
    struct words w = {.of.uid = INV_UNSAID};
    bool good = true;
    rmctl_parse(argc, argv, policy_options, parse_policy_option, "[NAME]",
                "Print the policy by which cores are divided; with NAME, choose another one.", &w);
    if (!rmctl_find_for(&sockets, w.of.uid))
        return RMCTL_FAILED;
    json_t *domains = json_array();
    for (unsigned i = 0; i < sockets.count; i++) {
        char now[INV_NAME_BYTES];
        if (!rmd_client_policy(sockets.name[i], &w.of, w.chosen, now)) {
            good &= complain_if_needed(&sockets, sockets.name[i], &w);
            continue;
        }
        json_array_append_new(domains,
                              json_pack("{ss sI ss}", "socket", sockets.name[i], "uid",
                                        (json_int_t)rmctl_meant(w.of.uid), "policy", now));
        if (!rmctl_common.json)
            print_policy(sockets.name[i], &w, now);
    }
    good &= json_array_size(domains) > 0;
    if (!json_array_size(domains) || !rmctl_common.json) {
        json_decref(domains);
        return good ? RMCTL_OK : RMCTL_FAILED;
    }
    int printed =
        rmctl_print_json(json_pack("{so so}", "domains", domains, "policies", policies_json()));
    return good ? printed : RMCTL_FAILED;
}

const struct rmctl_command rmctl_policy_command = {
    "policy", "print or choose the policy by which cores are divided", run_policy, policy_options};
