/* SPDX-License-Identifier: GPL-3.0-or-later */
/* policies.c - the policies by name, for rmd, its configuration and the tools. */
#include "rmd/policy/policy.h"

#include <stdio.h>
#include <string.h>

const struct rmd_policy rmd_policies[] = {
    {"workload", "in proportion to the announced workloads", rmd_policy_workload,
     rmd_gain_workload, false, false},
    {"equal", "the same for every process", rmd_policy_equal, rmd_gain_workload, false, false},
    {"throughput", "the most of all scalability graphs, process by process",
     rmd_policy_throughput, rmd_gain_throughput, false, false},
    {"makespan", "equal finish times of all processes", rmd_policy_makespan, rmd_gain_makespan,
     false, false},
    {"jobs", "the most of all jobs, with equal finish times in each", rmd_policy_jobs,
     rmd_gain_jobs, false, false},
    {"fair", "the same for every job, with equal finish times in each", rmd_policy_fair,
     rmd_gain_fair, false, false},
    {"energy", "as jobs with the fewest cores that are nearly as fast", rmd_policy_energy,
     rmd_gain_energy, false, true},
    {"interference", "as fair, cores that deliver less counting for less",
     rmd_policy_interference, rmd_gain_interference, true, false},
    {NULL, NULL, NULL, NULL, false, false}};

const struct rmd_policy *rmd_policy_named(const char *name)
{
    for (const struct rmd_policy *p = rmd_policies; p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

struct rmd_policy_names rmd_policy_names(void)
{
    struct rmd_policy_names names = {""};
    size_t at = 0;
    for (const struct rmd_policy *p = rmd_policies; p->name && at < sizeof names.text; p++) {
        const char *before = p == rmd_policies ? "" : p[1].name ? ", " : " or ";
        at += (size_t)snprintf(names.text + at, sizeof names.text - at, "%s%s", before, p->name);
    }
    return names;
}
