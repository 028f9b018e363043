/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroup.h - a control group with a cpuset for each user (cgroups(7), cpuset(7)): what is in it
 * cannot leave its CPUs, whatever it does, and neither can its children.
 */
#ifndef RMD_CGROUP_H
#define RMD_CGROUP_H

#include <sched.h>
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
bool rmd_cgroup_confine(uid_t uid, const cpu_set_t *cpus);

/* The process, and what it starts, belongs to the user's group from here on; returns where it was
 * before, for the caller to free.  NULL with errno. */
char *rmd_cgroup_enter(uid_t uid, pid_t pid);

/* Put it back to where it was. */
void rmd_cgroup_leave(pid_t pid, const char *before);

/* Nobody of that user is managed any more: processes that are left in the group, children of the
 * managed ones, go to the top of the hierarchy, and the group away. */
void rmd_cgroup_release(uid_t uid);

#endif
