/* SPDX-License-Identifier: GPL-3.0-or-later */
/* admin_snapshot.h - the admin snapshot for rmctl status: orders, limits, why cores are away,
 * unmanaged processes (control_protocol.h).  Only rmd's main thread calls this. */
#ifndef RMD_ADMIN_SNAPSHOT_H
#define RMD_ADMIN_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct rmd_domain;

/* A struct inv_admin_snapshot, followed by its users, processes and unmanaged processes, *bytes
 * bytes in all; the caller frees it.
 *   all  true: as an operator may see it; false: as the user of `domain` may
 * NULL: no memory. */
char *rmd_admin_snapshot(const struct rmd_domain *domain, bool all, size_t *bytes);

#endif
