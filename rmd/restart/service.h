/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * service.h - rmd under systemd: notifications, and systemd's descriptor store, which survives a
 * restart of rmd.  Without libsystemd, or under another init, all of this does nothing.
 */
#ifndef RMD_SERVICE_H
#define RMD_SERVICE_H

#include "rmd/restart/stored_fd.h"

#include <stdbool.h>

/* Receives the descriptors that systemd passes: *socket, to listen on, -1: none; and those that a
 * former rmd has stored, each by a call of `stored`, which closes it.  False: the descriptors are
 * not as expected, and rmd has logged that. */
bool rmd_service_receive(int *socket, rmd_stored_callback *stored);

/* Does systemd store descriptors for this process? */
bool rmd_service_can_store(void);
/* Stores a user's core table and its state (state.h); -1: drops them. */
void rmd_service_store(uid_t uid, int table_fd, int state_fd);
/* Likewise the memory of persisted_orders.h. */
void rmd_service_store_orders(int fd);

/* These notify systemd.  status: one line, which systemctl shows. */
void rmd_service_ready(const char *status);
void rmd_service_reloading(void);
void rmd_service_stopping(void);

#endif
