/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * keeper.h - who keeps core tables for the next rmd where systemd does not: a process of ours that
 * does nothing else, and is there as long as rmd or a process that is in one of them, and a while
 * longer when there are orders, or a power cap.
 */
#ifndef RMD_KEEPER_H
#define RMD_KEEPER_H

#include "kept.h"

/*
 * rmd_keeper_find - the keeper that a former rmd on this socket has left.  What it has comes by
 * `kept`, a descriptor at a time, for the callee to close, and stays kept.
 * rmd_keeper_open - after that: start one, if there was none.  It lives in the control group that
 * rmd is in by then (cgroup.h).  Before any thread is started.  Where there can be none it is said,
 * and nothing is kept.
 */
void rmd_keeper_find(const char *socket_name, rmd_kept_callback *kept);
void rmd_keeper_open(const char *socket_name);

/* Have a user's core table kept, and what goes with it; -1: not any more. */
void rmd_keeper_keep(uid_t uid, int table_fd, int state_fd);
/* Likewise the memory of persisted_orders.h. */
void rmd_keeper_keep_orders(int fd);

/* rmd ends.  The keeper does too, by the time this returns, unless processes are in what it keeps,
 * or it has orders, which it keeps for ten minutes more. */
void rmd_keeper_close(void);

#endif
