/* SPDX-License-Identifier: GPL-3.0-or-later */
/* simulate_print.h - the output of a simulation: a table, JSON, a picture. */
#ifndef RMD_SIMULATE_PRINT_H
#define RMD_SIMULATE_PRINT_H

#include "tools/rmctl/simulate/simulate.h"

struct sim_bands {
    unsigned count;
    const char *name[SIM_BANDS];
};

struct sim_report {
    const struct sim_world *world;
    const char *machine;
    const struct sim_bound *bound;
    const struct sim_result *result;
    unsigned nresults;
    const struct sim_bands *bands;
};

/* Prints the kept decisions, one a line. */
void sim_print_decisions(const struct sim_result *result, FILE *to);
void sim_print_table(const struct sim_report *report, FILE *to);
void sim_print_json(const struct sim_report *report, FILE *to);
/* These write the cores over time, and the picture of them, to a file.  False: stderr has been told
 * why not. */
bool sim_write_series(const struct sim_report *report, const char *path);
bool sim_draw(const struct sim_report *report, const char *path);

#endif
