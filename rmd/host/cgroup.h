/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroup.h - a control group with a cpuset for each user (cgroups(7), cpuset(7)).  A process in it,
 * and its children, cannot leave the CPUs of the cpuset.
 */
#ifndef RMD_CGROUP_H
#define RMD_CGROUP_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * rmd_cgroup_open - finds the directory for the groups, and checks that it can be used.
 *   base  a directory of a cgroup file system.  NULL: rmd's own group of version 2, else rmd's own
 *         group in version 1's hierarchy of cpuset
 * False: it has logged what is missing, and nothing has changed.
 */
bool rmd_cgroup_open(const char *base);

/* Sets the CPUs of the user's group, which it makes if necessary.  False with errno. */
bool rmd_cgroup_confine(uid_t uid, const struct inv_cpus *cpus);

/* The group of the process; the caller frees it.  NULL: the user's own group, or unknown. */
char *rmd_cgroup_of(pid_t pid, uid_t uid);

/* Moves the process into the user's group.  Processes that it starts will be there, too.  pidfd:
 * makes sure that pid is not another process's.  False with errno. */
bool rmd_cgroup_enter(uid_t uid, pid_t pid, int pidfd);

/* Moves the process into the group `before`, as rmd_cgroup_of has returned it; NULL: unknown.
 * False with errno: the process stays where it is. */
bool rmd_cgroup_leave(pid_t pid, int pidfd, const char *before);

/*
 * rmd_cgroup_release - the user has no managed process left.  Moves the remaining processes of its
 *   group, children of managed ones, to the group `origin` (NULL: unknown), and removes the group.
 *   Processes that cannot move stay in it, with all CPUs: in any third group they would evade the
 *   limits of their own.
 * rmd_cgroup_remove_leftovers - periodic: tries that again for groups that had to stay, also those
 *   of a former rmd.
 * rmd_cgroup_has_leftovers - are there such groups?
 */
void rmd_cgroup_release(uid_t uid, const char *origin);
void rmd_cgroup_remove_leftovers(void);
bool rmd_cgroup_has_leftovers(void);

#endif
