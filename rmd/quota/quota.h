/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quota.h - the processor time that control groups allow a process (cgroups(7), CPU bandwidth).  A
 * group, and each group above it, may have a quota for each period; the least of them holds.
 */
#ifndef RMD_QUOTA_H
#define RMD_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rmd_quota {
    uint64_t quota_ns, period_ns; /* processor time for each period; quota_ns 0: no limit */
    char group[512];              /* the directory of the group with that quota; "" without a
                                     limit */
    char nonsense[512];           /* a file that was ignored, since its text is no quota, or since it */
    char text[64];                /* cannot be read; its text, or "" and the errno of reading */
    int error;
};

/*
 * rmd_quota_of - the tightest quota of the process.  Files that cannot be read, and a quota that is
 *   no number above zero, limit nothing: `nonsense` names the last such file.  That a group has no
 *   such file is usual (the root of the hierarchy).
 *   root  where proc is, and below which the groups are mounted; "" for /
 *   pid   0: rmd's own process
 */
void rmd_quota_of(struct rmd_quota *quota, const char *root, pid_t pid);

/* The number of cores that the quota pays for: quota_ns / period_ns. */
double rmd_quota_cores(const struct rmd_quota *quota);

/* Periods of the group so far, and those in which it was throttled.  False: unknown. */
bool rmd_quota_periods(const struct rmd_quota *quota, uint64_t *periods, uint64_t *throttled);

#endif
