/* SPDX-License-Identifier: GPL-3.0-or-later */
/* launcher.h - the job that an rmd with --private or --node belongs to, and ends with. */
#ifndef RMD_LAUNCHER_H
#define RMD_LAUNCHER_H

#include "libinvasive/table/topology.h"

#include <stdbool.h>

/* Do not end by signals that all processes of the job get; fault signals and SIGKILL still end
 * rmd.  Call before any thread is started. */
void rmd_launcher_outlive_signals(void);

/* Write "ready CORES" to ready_fd, and " uneven" where cores have several speeds.  With `private`, rmd ends when the descriptor's other end is
 * closed, and also when the parent process dies, within two seconds whatever rmd does then.
 * Returns 0, or -1 with errno. */
int rmd_launcher_watch(int ready_fd, bool private, const struct inv_topology *topology);

#endif
