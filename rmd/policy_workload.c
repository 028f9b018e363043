/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * policy_workload.c - ownership in proportion to the workloads W that the processes
 * announce: D_i = ceil(R W_i / sum W) - alpha_i with alpha_i in {0, 1} (papers/
 * invasive-compute-balancing.txt 5.3.3), alpha chosen by the largest remainders.
 */
#include "policy.h"

void rmd_policy_workload(const struct rmd_snapshot *s, unsigned *target)
{
    double largest = 0, sum = 0;
    unsigned known = 0;
    for (unsigned i = 0; i < s->nprocs; i++)
        if (rmd_workload_known(&s->needs[i]) && s->needs[i].workload > largest)
            largest = s->needs[i].workload;
    /* Relative to the largest, so that the sum of huge workloads does not overflow. */
    for (unsigned i = 0; i < s->nprocs; i++)
        if (rmd_workload_known(&s->needs[i])) {
            sum += s->needs[i].workload / largest;
            known++;
        }
    double mean = known ? sum / known : 1;
    rmd_apportion(s, (struct rmd_scale){.unit = largest, .unknown = mean}, target);
}
