/* SPDX-License-Identifier: GPL-3.0-or-later */
/* limit.h - a policy within limits for launches.  A pure function, as the policies are. */
#ifndef RMD_LIMIT_H
#define RMD_LIMIT_H

#include "policy.h"

#include <stdint.h>

/*
 * rmd_limited - what the policy says, but no launch owns more than `most` cores together, 0: no
 * limit.  What a launch may not have goes to the others, and is nobody's where none may have it.
 *   launch  of each process of the snapshot: what belongs together here.  It has nothing to do with
 *           rmd_need.job, which says what policies take for a job: one launch may have many of them
 * More than 512 processes have no limit.
 */
void rmd_limited(const struct rmd_policy *policy, const struct rmd_snapshot *snapshot,
                 const uint64_t *launch, unsigned most, unsigned *target);

#endif
