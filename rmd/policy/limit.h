/* SPDX-License-Identifier: GPL-3.0-or-later */
/* limit.h - a policy within limits for launches.  A pure function, as the policies are. */
#ifndef RMD_LIMIT_H
#define RMD_LIMIT_H

#include "rmd/policy/policy.h"

#include <stdint.h>

/*
 * rmd_limited - lets the policy decide, but no launch gets more than `most` cores (0: no limit).
 * Other launches get the cores that a launch may not have; cores that no launch may have stay
 * without owner.
 *   launch  of each process of the snapshot: its launch.  A launch may have several of the jobs of
 *           rmd_need.job
 * More than 512 processes have no limit.
 */
void rmd_limited(const struct rmd_policy *policy, const struct rmd_snapshot *snapshot,
                 const uint64_t *launch, unsigned most, unsigned *target);

#endif
