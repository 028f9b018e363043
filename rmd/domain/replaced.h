/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replaced.h - detects members that have become another program (exec).  Such a member is the same
 * process, so its pidfd does not tell.  The old program's cores and wants would stay for ever.
 *
 * A member gets the core table as an open file of its own, with a lock, maps it, and closes the
 * descriptor.  So the file lives as long as the mapping: until exec, by whatever call, or the end.
 * Then the lock is free, and the table's inotify watch reports that a file has been closed.  A
 * child has other memory (fork: a handler unmaps the table there) or shares it (vfork), so it
 * changes nothing.
 */
#ifndef RMD_REPLACED_H
#define RMD_REPLACED_H

#include "rmd/domain/domain.h"

/* The table as an open file of the process in this slot; the caller passes it to the process and
 * closes it.  From then on the process counts as replaced when that file is closed.  -1 with errno:
 * there is no file, and an exec will not be detected. */
int rmd_replaced_begin(struct rmd_domain *domain, unsigned slot);

/* Watches for files of the domain's table that are closed, or ends that.  If the kernel gives this
 * user no more watches, only the periodic checks call rmd_replaced_check. */
void rmd_replaced_watch(struct rmd_domain *domain);
void rmd_replaced_unwatch(struct rmd_domain *domain);

/* Removes members that have been replaced. */
void rmd_replaced_check(struct rmd_domain *domain);

/* Has the process in this slot been a member as another program?  Asked once, when it has
 * joined. */
bool rmd_replaced_is_back(struct rmd_domain *domain, unsigned slot);
/* The domain has no member left: forgets the replaced ones. */
void rmd_replaced_forget(struct rmd_domain *domain);

#endif
