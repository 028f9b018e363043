/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fd_holder.h - the descriptor holder: a child process of rmd that stores core tables for the next
 * rmd where systemd does not.  It lives as long as rmd, or a process in one of the tables.  With
 * orders or a power cap it lives some minutes longer.
 */
#ifndef RMD_FD_HOLDER_H
#define RMD_FD_HOLDER_H

#include "rmd/restart/stored_fd.h"

#include <stdint.h>

/* Messages between rmd and the holder; a message about a descriptor carries it. */
enum rmd_holder_kind {
    RMD_HOLDER_STORE = 1, /* rmd: store this descriptor.  holder: this one is stored */
    RMD_HOLDER_DROP,      /* rmd: close the descriptor of this user and kind */
    RMD_HOLDER_END,       /* rmd: I end.  holder: I stay; without an answer it ends, after removing
                             its path */
    RMD_HOLDER_ALL,       /* holder: that was the last descriptor */
    RMD_HOLDER_BUSY       /* holder: another rmd is my client */
};

struct rmd_holder_message {
    uint32_t kind, uid, what; /* enum rmd_holder_kind; the user; enum rmd_stored_kind */
};

/*
 * rmd_fd_holder_find - connects to the descriptor holder of a former rmd on this socket.  Passes a
 *                      copy of each stored descriptor to `stored`, which closes it.
 * rmd_fd_holder_start - afterwards: starts one if there was none.  Call it before any thread
 *                       starts.  The new process is in the control group that rmd is in then
 *                       (cgroup.h).  Where it cannot start, rmd logs that, and nothing is stored.
 *                       lock_tries: see socket_path.h.
 */
void rmd_fd_holder_find(const char *socket_name, rmd_stored_callback *stored);
void rmd_fd_holder_start(const char *socket_name, unsigned *lock_tries);

/* Stores a user's core table and its state (state.h); -1: drops them. */
void rmd_fd_holder_store(uid_t uid, int table_fd, int state_fd);
/* Likewise the memory of persisted_orders.h. */
void rmd_fd_holder_store_orders(int fd);

/* rmd ends.  When this returns the descriptor holder has ended too, unless a process is in one of
 * its tables, or it has orders.  It stores orders for ten minutes more. */
void rmd_fd_holder_close(void);

#endif
