/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_overview.h - what is ordered of a domain, for status, top and drain. */
#ifndef RMCTL_OVERVIEW_H
#define RMCTL_OVERVIEW_H

#include "client_control.h"
#include "rmctl_view.h"

#include <jansson.h>
#include <stdio.h>

/* Why nobody of the domain may have the core, in a word; NULL: somebody may, or nobody knows. */
const char *overview_why_away(const struct inv_overview *overview, const struct view *view,
                              unsigned core);

/* Policy, limits, what is drained or offline, on a line; orders of processes and, for operators,
 * other users, a line each. */
void overview_print_head(FILE *to, const struct inv_overview *overview);
void overview_print_orders(FILE *to, const struct inv_overview *overview);

/* The same in the object of a domain, as status --json prints it; NULL: nobody knows. */
json_t *overview_json(const struct inv_overview *overview, const struct view *view);

/* [0, 1, 5] */
json_t *overview_cores_json(const uint64_t *set);

#endif
