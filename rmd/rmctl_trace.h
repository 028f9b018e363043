/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_trace.h - rmctl trace start FILE and trace stop.  False: stderr says why. */
#ifndef RMCTL_TRACE_H
#define RMCTL_TRACE_H

#include <stdbool.h>

bool rmctl_trace_start(const char *socket, const char *path);
bool rmctl_trace_stop(const char *socket);

#endif
