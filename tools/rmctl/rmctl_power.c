/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_power.c - rmctl power: prints the temperature of the CPUs and its limit, or sets the
 * limit. */
#define _GNU_SOURCE
#include "client/client_control.h"
#include "rmd/loop/text.h"
#include "rmd/power/thermal.h"
#include "tools/rmctl/rmctl.h"

#include <stdio.h>
#include <string.h>

enum { OPT_THRESHOLD = 256 };
enum { WAIT_MS = 2000 };

static const struct argp_option power_options[] = {
    {"threshold", OPT_THRESHOLD, "DEGREES", 0,
     "keep the CPUs below DEGREES Celsius from now on; off: without a limit", 0},
    {0}};

static error_t parse_power_option(int key, char *arg, struct argp_state *state)
{
    struct inv_control *c = state->input;
    if (key != OPT_THRESHOLD)
        return ARGP_ERR_UNKNOWN;
    c->cores = 0;
    if (strcmp(arg, "off") && !rmd_number(arg, RMD_THERMAL_LEAST, RMD_THERMAL_MOST, &c->cores))
        argp_error(state, "--threshold '%s': use degrees Celsius from %d to %d, or off", arg,
                   RMD_THERMAL_LEAST, RMD_THERMAL_MOST);
    return 0;
}

static bool has_temperature(const struct inv_chip *chip)
{
    return chip->temperature != INV_NO_TEMPERATURE;
}

static json_t *chips_json(const struct inv_outcome *o)
{
    json_t *chips = json_array();
    for (unsigned i = 0; i < o->nchips && i < INV_CHIPS; i++) {
        const struct inv_chip *chip = &o->chip[i];
        json_t *degrees = has_temperature(chip) ? json_integer(chip->temperature) : json_null();
        json_array_append_new(chips, json_pack("{si so si}", "package", (int)chip->package,
                                               "temperature", degrees, "speed_percent",
                                               (int)chip->speed_percent));
    }
    return chips;
}

/* One chip is what the text tells already. */
static void print_chips(const struct inv_outcome *o)
{
    for (unsigned i = 0; o->nchips > 1 && i < o->nchips && i < INV_CHIPS; i++) {
        const struct inv_chip *chip = &o->chip[i];
        printf("chip %u: ", chip->package);
        if (has_temperature(chip))
            printf("%d degrees, ", chip->temperature);
        printf("%u %%\n", chip->speed_percent);
    }
}

static json_t *power_json(const char *socket, const struct inv_outcome *o)
{
    json_t *threshold = o->cores ? json_integer(o->cores) : json_null();
    json_t *degrees = o->sensors ? json_integer(o->job_cores) : json_null();
    bool done = o->status == INV_DONE;
    json_t *said =
        json_pack("{ss ss ss ss so so si si so}", "socket", socket, "command", "power", "outcome",
                  done ? "done" : "refused", "text", o->text, "threshold", threshold,
                  "temperature", degrees, "speed_percent", (int)o->owned, "sensors", (int)o->sensors,
                  "chips", chips_json(o));
    if (!done)
        json_object_set_new(said, "error", json_string(o->text));
    return said;
}

static int run_power(int argc, char **argv)
{
    struct inv_control c = {.verb = INV_POWER, .cores = INV_UNSAID, .wait_ms = WAIT_MS};
    struct inv_outcome o;
    struct rmctl_sockets sockets;
    rmctl_parse(argc, argv, power_options, parse_power_option, "",
                "How warm the CPUs are, and the limit of their temperature; with --threshold, another "
                "limit.", &c);
    const char *socket = rmctl_find_one(&sockets);
    if (!socket)
        return RMCTL_FAILED;
    if (!rmd_client_control(socket, &c, &o)) {
        rmctl_complain("ask", socket);
        return RMCTL_FAILED;
    }
    int status = RMCTL_OK;
    if (rmctl_common.json)
        status = rmctl_print_json(power_json(socket, &o));
    else {
        fprintf(o.status == INV_DONE ? stdout : stderr, "%s%s\n",
                o.status == INV_DONE ? "" : "rmctl: ", o.text);
        print_chips(&o);
    }
    return o.status == INV_DONE ? status : RMCTL_FAILED;
}

const struct rmctl_command rmctl_power_command = {
    "power", "how warm the CPUs are, and how warm they may become", run_power, power_options};
