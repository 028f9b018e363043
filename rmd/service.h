/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.h - rmd under systemd: what it is told, and the descriptors that it keeps while rmd is
 * started again.  Without libsystemd, or under another init, all of this does nothing.
 */
#ifndef RMD_SERVICE_H
#define RMD_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

/* Take what has been handed over to us: the socket to listen on, -1 none; and core tables that
 * a former rmd has had kept, each by `table` (a descriptor of its own, for the callee to close).
 * False: it makes no sense, and has been said. */
bool rmd_service_take(int *socket, void (*table)(uid_t uid, int fd));

/* Have a user's core table kept; fd -1: not any more. */
void rmd_service_keep(uid_t uid, int fd);

void rmd_service_ready(const char *status);
void rmd_service_reloading(void);
void rmd_service_stopping(void);

#endif
