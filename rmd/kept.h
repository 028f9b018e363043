/* SPDX-License-Identifier: GPL-3.0-or-later */
/* kept.h - the pieces of memory that somebody keeps for the next rmd: systemd (service.h), or a
 * process of ours (keeper.h). */
#ifndef RMD_KEPT_H
#define RMD_KEPT_H

#include <sys/types.h>

enum { RMD_KEPT_USERS = 1024 }; /* whose tables are kept at most */

enum rmd_kept {
    RMD_KEPT_TABLE,  /* a user's core table */
    RMD_KEPT_STATE,  /* what is noted beside it, state.h */
    RMD_KEPT_ORDERS, /* persisted_orders.h; of user 0 */
    RMD_KEPT_KINDS
};

/* Takes one of them, whose descriptor is the callee's from there on. */
typedef void rmd_kept_callback(uid_t uid, enum rmd_kept what, int fd);

#endif
