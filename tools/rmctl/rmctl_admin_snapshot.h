/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_admin_snapshot.h - prints the admin snapshot of a domain, for status, top and drain. */
#ifndef RMCTL_ADMIN_SNAPSHOT_H
#define RMCTL_ADMIN_SNAPSHOT_H

#include "client/client_control.h"
#include "tools/rmctl/rmctl_view.h"

#include <jansson.h>
#include <stdio.h>

/* One word that says why the core is away; NULL: it is not, or the reason is unknown. */
const char *admin_why_away(const struct inv_admin_snapshot *snapshot, const struct view *view,
                           unsigned core);

/* admin_print_head - a line with policy, limits, drained and offline cores.
 * admin_print_unmanaged - a line for each process that computes beside those of the domain.
 * admin_print_orders - a line for each order of a process, and for each other user. */
void admin_print_head(FILE *to, const struct inv_admin_snapshot *snapshot);
void admin_print_unmanaged(FILE *to, const struct inv_admin_snapshot *snapshot);
void admin_print_orders(FILE *to, const struct inv_admin_snapshot *snapshot);

/* The domain as a JSON object, as status --json prints it.  snapshot NULL: only what view has. */
json_t *admin_snapshot_json(const struct inv_admin_snapshot *snapshot, const struct view *view);

/* A set of cores as a JSON array of their numbers, such as [0, 1, 5]. */
json_t *admin_cores_json(const uint64_t *set);

#endif
