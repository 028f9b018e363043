/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroup.h - a control group with a cpuset for each user (cgroups(7), cpuset(7)): what is in it
 * cannot leave its CPUs, whatever it does, and neither can its children.
 */
#ifndef RMD_CGROUP_H
#define RMD_CGROUP_H

#include "cpus.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * rmd_cgroup_open - find the place for the groups and see that it can be used.
 *   base  a directory of a cgroup file system, or NULL: of version 2 the group that rmd is in, else
 *         of version 1 that in the hierarchy of cpuset
 * False: has said what is missing.  Nothing has changed then.
 */
bool rmd_cgroup_open(const char *base);

/* The user's processes may use these CPUs; makes the group.  False with errno. */
bool rmd_cgroup_confine(uid_t uid, const struct inv_cpus *cpus);

/* The group that the process is in, for the caller to free.  NULL: it is the one of this user
 * already, or nobody knows. */
char *rmd_cgroup_of(pid_t pid, uid_t uid);

/* The process, by its pidfd also, and what it starts, belongs to the user's group from here on.
 * False with errno. */
bool rmd_cgroup_enter(uid_t uid, pid_t pid, int pidfd);

/* Put it into the group `before`, as rmd_cgroup_of has said; NULL: unknown.  False with errno: it
 * stays where it is. */
bool rmd_cgroup_leave(pid_t pid, int pidfd, const char *before);

/*
 * rmd_cgroup_release - nobody of that user is managed any more: processes that are left in the
 *   group, children of the managed ones, go to the group `home`, NULL unknown, and the user's group
 *   away.  What cannot be put back stays in it, with all CPUs: of any other group it would evade the
 *   limits of its own.
 * rmd_cgroup_tidy - now and then: the same again for groups that had to stay, those that a former
 *   rmd has left among them.
 * rmd_cgroup_untidy - are there such groups?
 */
void rmd_cgroup_release(uid_t uid, const char *home);
void rmd_cgroup_tidy(void);
bool rmd_cgroup_untidy(void);

#endif
