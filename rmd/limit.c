/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * limit.c - limits for jobs, over any policy: where it gives a job too much, the job is a machine
 * of its own, with as many cores as it may have, and the policy decides about the rest again.
 * Each round settles a job at least.
 */
#include "limit.h"

#include <string.h>

enum { LIMIT_PROCS = 512 }; /* twice the slots of a domain: those to come */

struct part {
    unsigned count;
    unsigned index[LIMIT_PROCS]; /* in the whole snapshot */
    struct rmd_need needs[LIMIT_PROCS];
    unsigned target[LIMIT_PROCS];
};

static void add(struct part *part, const struct rmd_snapshot *all, unsigned i)
{
    part->index[part->count] = i;
    part->needs[part->count++] = all->needs[i];
}

/* Let the policy divide so many cores among these processes. */
static void decide(rmd_policy *policy, const struct rmd_snapshot *all, struct part *part,
                   unsigned ncores, unsigned *target)
{
    struct rmd_snapshot s = *all;
    s.ncores = ncores;
    s.nprocs = part->count;
    s.needs = part->needs;
    if (part->count)
        policy(&s, part->target);
    for (unsigned k = 0; k < part->count; k++)
        target[part->index[k]] = part->target[k];
}

static unsigned sum_of(const struct rmd_snapshot *s, const uint64_t *job, uint64_t which,
                       const unsigned *target)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < s->nprocs; i++)
        if (job[i] == which)
            sum += target[i];
    return sum;
}

/* The process of a job that has too much, -1 none. */
static int excessive(const struct rmd_snapshot *s, const uint64_t *job, unsigned max_job,
                     const unsigned *target)
{
    for (unsigned i = 0; i < s->nprocs; i++)
        if (sum_of(s, job, job[i], target) > max_job)
            return (int)i;
    return -1;
}

void rmd_limited(rmd_policy *policy, const struct rmd_snapshot *s, const uint64_t *job,
                 unsigned max_job, unsigned *target)
{
    bool settled[LIMIT_PROCS] = {false};
    struct part part;
    unsigned left = s->ncores;
    policy(s, target);
    if (!max_job || s->nprocs > LIMIT_PROCS)
        return;
    for (int who; (who = excessive(s, job, max_job, target)) >= 0;) {
        part.count = 0;
        for (unsigned i = 0; i < s->nprocs; i++)
            if (job[i] == job[who]) {
                settled[i] = true;
                add(&part, s, i);
            }
        decide(policy, s, &part, max_job, target);
        left -= max_job;
        part.count = 0;
        for (unsigned i = 0; i < s->nprocs; i++)
            if (!settled[i])
                add(&part, s, i);
        decide(policy, s, &part, left, target);
    }
}
