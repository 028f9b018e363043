/* SPDX-License-Identifier: GPL-3.0-or-later */
/* overview.h - what is ordered, and why cores are away, for rmctl status (control_protocol.h).
 * Only rmd's main thread calls this. */
#ifndef RMD_OVERVIEW_H
#define RMD_OVERVIEW_H

#include <stdbool.h>
#include <stddef.h>

struct rmd_domain;

/* A struct inv_overview and what is behind it, as the user of `domain` may see it, or an operator
 * (all); for the caller to free.  NULL: no memory. */
char *rmd_overview(const struct rmd_domain *domain, bool all, size_t *bytes);

#endif
