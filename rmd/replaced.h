/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replaced.h - seeing that a member has become another program (exec): it is the same process, so
 * its pidfd does not tell, and what it held and wanted nobody will give up.
 *
 * The kernel tells, by what only the memory of the old program holds.  A member gets the core table
 * as an open file of its own, on which there is a lock, and maps it; the descriptor is closed, so
 * the file lives as long as that mapping: until exec, by whatever call, or the end.  Then the lock
 * is free, and the table's inotify watch says that a file of it has been closed.  A child has other
 * memory (fork: our handler unmaps the table there) or shares it (vfork), and changes nothing.
 */
#ifndef RMD_REPLACED_H
#define RMD_REPLACED_H

#include "domain.h"

/* The table as an open file of the process in this slot, for the caller to pass to it and to close
 * then; from here on it counts as replaced when nobody has that.  -1 with errno: there is none, it
 * will not be noticed. */
int rmd_replaced_begin(struct rmd_domain *domain, unsigned slot);

/* For an rmd whose launcher waits for its end: no inotify from here on, since the kernel takes some
 * 20 ms to end a watch (at 250 ticks a second).  The next check, within a second, notices a member
 * that has called exec and does not join again. */
void rmd_replaced_leave_to_checks(void);

/* Hear of files of the domain's table that are closed.  Where the kernel gives no more watches to
 * this user, rmd_replaced_check is called by the checks only. */
void rmd_replaced_watch(struct rmd_domain *domain);
void rmd_replaced_unwatch(struct rmd_domain *domain);

/* Members that have been replaced have left, when this returns. */
void rmd_replaced_check(struct rmd_domain *domain);

/* Has the process in this slot been a member as another program?  Asked once, when it has
 * joined. */
bool rmd_replaced_is_back(struct rmd_domain *domain, unsigned slot);
/* Nobody is a member any more. */
void rmd_replaced_forget(struct rmd_domain *domain);

#endif
