/* SPDX-License-Identifier: GPL-3.0-or-later */
/* launcher.h - the job that an rmd with --private or --node belongs to, and ends with. */
#ifndef RMD_LAUNCHER_H
#define RMD_LAUNCHER_H

#include "libinvasive/table/topology.h"

#include <stdbool.h>

/* rmd ignores signals that all processes of the job get; fault signals and SIGKILL still end it.
 * Call before any thread is started. */
void rmd_launcher_outlive_signals(void);

/* Writes "ready CORES" to ready_fd, with " uneven" if the cores have several speeds.  With
 * `private`, rmd ends when the other end of ready_fd is closed, and when the parent process dies:
 * within two seconds, whatever rmd does then.  Returns 0, or -1 with errno. */
int rmd_launcher_watch(int ready_fd, bool private, const struct inv_topology *topology);

#endif
