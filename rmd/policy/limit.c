/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * limit.c - limits for launches, over any policy: where it gives one too much, the launch is a
 * machine of its own, with as many cores as it may have, and the policy decides about the rest
 * again.  Each round settles a launch at least.
 */
#include "rmd/policy/limit.h"
#include "libinvasive/base/assertion.h"

#include <string.h>

enum { LIMIT_PROCS = 512 }; /* twice the slots of a domain: those to come */

struct part {
    unsigned count;
    unsigned index[LIMIT_PROCS]; /* in the whole snapshot */
    struct rmd_need needs[LIMIT_PROCS];
    unsigned target[LIMIT_PROCS];
};

/* The processes of one launch; or, of none, all that are not settled.  Jobs are those of the whole
 * snapshot, with the numbers of the part: a part of a job is one, too. */
static void select_part(struct part *part, const struct rmd_snapshot *all, const uint64_t *launch,
                        const uint64_t *of, const bool *settled)
{
    unsigned renumbered[LIMIT_PROCS] = {0}; /* by job: its number here and one */
    part->count = 0;
    for (unsigned i = 0; i < all->nprocs; i++) {
        if (of ? launch[i] != *of : settled[i])
            continue;
        inv_assert(all->needs[i].job < LIMIT_PROCS && part->count < LIMIT_PROCS);
        unsigned k = part->count++, *job = &renumbered[all->needs[i].job];
        part->index[k] = i;
        part->needs[k] = all->needs[i];
        if (!*job)
            *job = k + 1;
        part->needs[k].job = *job - 1;
    }
}

/* Lets the policy divide `ncores` among the processes of a part.  Returns the sum of their cores.
 * The arena of the whole snapshot suffices for a part. */
static unsigned decide_part(const struct rmd_policy *policy, const struct rmd_snapshot *all,
                            struct part *part, unsigned ncores, unsigned *target)
{
    struct rmd_snapshot s = *all;
    unsigned sum = 0;
    s.ncores = ncores;
    s.nprocs = part->count;
    s.needs = part->needs;
    if (ncores)
        policy->decide(&s, part->target);
    else
        memset(part->target, 0, sizeof part->target);
    for (unsigned k = 0; k < part->count; k++)
        sum += target[part->index[k]] = part->target[k];
    return sum;
}

static unsigned sum_of(const struct rmd_snapshot *s, const uint64_t *launch, uint64_t which,
                       const unsigned *target)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < s->nprocs; i++)
        if (launch[i] == which)
            sum += target[i];
    return sum;
}

/* A process of a launch that has too much, -1 none. */
static int find_excessive(const struct rmd_snapshot *s, const uint64_t *launch, unsigned most,
                          const unsigned *target)
{
    for (unsigned i = 0; i < s->nprocs; i++)
        if (sum_of(s, launch, launch[i], target) > most)
            return (int)i;
    return -1;
}

void rmd_limited(const struct rmd_policy *policy, const struct rmd_snapshot *s,
                 const uint64_t *launch, unsigned most, unsigned *target)
{
    bool settled[LIMIT_PROCS] = {false};
    struct part part;
    unsigned left = s->ncores;
    policy->decide(s, target);
    if (!most || s->nprocs > LIMIT_PROCS)
        return;
    for (int i; (i = find_excessive(s, launch, most, target)) >= 0;) {
        select_part(&part, s, launch, &launch[i], NULL);
        for (unsigned k = 0; k < part.count; k++)
            settled[part.index[k]] = true;
        unsigned given = decide_part(policy, s, &part, most, target);
        inv_assert(given <= most && given <= left);
        left -= given;
        select_part(&part, s, launch, NULL, settled);
        if (part.count)
            decide_part(policy, s, &part, left, target);
    }
}
