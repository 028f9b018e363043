/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client.h - asking an rmd, for the tools (invade, rmctl).  Members of a domain do not
 * use this: they join through libinvasive. */
#ifndef RMD_CLIENT_H
#define RMD_CLIENT_H

#include "protocol.h"

/* All: name is "@NAME" or a path.  An rmd that does not answer within two seconds counts
 * as one that is not there, and so does one that belongs to neither us nor root. */

/* Map the table of that rmd, read-only.  NULL with errno; EPERM: it serves another user. */
struct inv_table *rmd_client_observe(const char *name);

/* Its reports; the caller frees them.  *count 0 and NULL when there are none; -1 in *error
 * (0 otherwise) with errno when it cannot be asked. */
struct inv_report *rmd_client_reports(const char *name, unsigned *count, int *error);

#endif
