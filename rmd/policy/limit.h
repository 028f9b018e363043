/* SPDX-License-Identifier: GPL-3.0-or-later */
/* limit.h - a policy within limits for launches, and with priorities.  A pure function, as the policies
 * are. */
#ifndef RMD_LIMIT_H
#define RMD_LIMIT_H

#include "rmd/policy/policy.h"

#include <stdint.h>

/*
 * rmd_limited - lets the policy decide, but no launch gets more than `most` cores (0: no limit).
 * Cores that a launch may not have go to other launches; cores that no launch may have stay without
 * owner.
 *   launch  of each process of the snapshot: its launch.  A launch may have several of the jobs of
 *           rmd_need.job
 * More than 512 processes have no limit.
 */
void rmd_limited(const struct rmd_policy *policy, const struct rmd_snapshot *snapshot,
                 const uint64_t *launch, unsigned most, unsigned *target);

/* Priorities, 0 to RMD_PRIORITY_MOST: the more goes first. */
enum { RMD_PRIORITY = 50, RMD_PRIORITY_MOST = 100 };

/*
 * rmd_prioritized - rmd_limited for the processes of the highest priority, as if they were alone but
 * for the least that each other process needs (its min_cores, one at least); then for those of the
 * next priority, with the cores that are left, and so on.
 * rmd_priorities_differ - have the processes of the snapshot several priorities?
 * rmd_priorities_move - would `target` move cores from one priority to another?  Then it is
 * worthwhile.
 */
void rmd_prioritized(const struct rmd_policy *policy, const struct rmd_snapshot *snapshot,
                     const uint64_t *launch, unsigned most, unsigned *target);
bool rmd_priorities_differ(const struct rmd_snapshot *snapshot);
bool rmd_priorities_move(const struct rmd_snapshot *snapshot, const unsigned *target);

#endif
