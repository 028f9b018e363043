/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stored_fd.h - descriptors of memory files that are stored for the next rmd: by systemd
 * (service.h), or by the descriptor holder (fd_holder.h). */
#ifndef RMD_STORED_FD_H
#define RMD_STORED_FD_H

#include <sys/types.h>

enum { RMD_STORED_USERS = 1024 }; /* at most so many users have a stored table */

enum rmd_stored_kind {
    RMD_STORED_TABLE,  /* a user's core table */
    RMD_STORED_STATE,  /* the state of its domain, state.h */
    RMD_STORED_ORDERS, /* persisted_orders.h; under user 0 */
    RMD_STORED_KINDS
};

/* Receives one of them.  The callee closes fd. */
typedef void rmd_stored_callback(uid_t uid, enum rmd_stored_kind what, int fd);

#endif
