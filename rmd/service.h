/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.h - rmd under systemd: what it is told, and the descriptors that it keeps while rmd is
 * started again.  Without libsystemd, or under another init, all of this does nothing.
 */
#ifndef RMD_SERVICE_H
#define RMD_SERVICE_H

#include "kept.h"

#include <stdbool.h>

/* Take what has been handed over to us: the socket to listen on, -1 none; and what a former rmd has
 * had kept, core tables, its notes of them, and orders, each by `kept` (a descriptor of its own,
 * for the callee to close).  False: it makes no sense, and has been said. */
bool rmd_service_take(int *socket, rmd_kept_callback *kept);

/* Is there somebody who keeps them? */
bool rmd_service_keeps(void);
/* Have a user's core table kept, and what goes with it; -1: not any more. */
void rmd_service_keep(uid_t uid, int table_fd, int state_fd);
/* Likewise the memory of persisted_orders.h. */
void rmd_service_keep_orders(int fd);

void rmd_service_ready(const char *status);
void rmd_service_reloading(void);
void rmd_service_stopping(void);

#endif
