/* SPDX-License-Identifier: GPL-3.0-or-later */
/* limit.h - a policy within limits for jobs.  A pure function, as the policies are. */
#ifndef RMD_LIMIT_H
#define RMD_LIMIT_H

#include "policy.h"

#include <stdint.h>

/*
 * rmd_limited - what the policy says, but no job owns more than max_job cores together, 0: no
 * limit.  What a job may not have goes to the other jobs, and is nobody's where none may have it.
 *   job  of each process of the snapshot
 */
void rmd_limited(rmd_policy *policy, const struct rmd_snapshot *snapshot, const uint64_t *job,
                 unsigned max_job, unsigned *target);

#endif
