/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * limit.c - limits for launches, over any policy.  If the policy gives a launch too many cores, the
 * launch becomes a machine of its own with as many cores as it may have, and the policy decides
 * about the other launches again.  Each round settles at least one launch.
 *
 * Priorities are above the limits: the processes of one priority are a machine of their own, the
 * highest first.
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

/* A process of a launch that has too many cores; -1: none. */
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

/* --- priorities */

bool rmd_priorities_differ(const struct rmd_snapshot *s)
{
    for (unsigned i = 1; i < s->nprocs; i++)
        if (s->needs[i].priority != s->needs[0].priority)
            return true;
    return false;
}

/* The highest priority below `below`.  False: there is none. */
static bool next_priority(const struct rmd_snapshot *s, unsigned below, unsigned *priority)
{
    bool any = false;
    for (unsigned i = 0; i < s->nprocs; i++) {
        unsigned p = s->needs[i].priority;
        if (p < below && (!any || p > *priority)) {
            *priority = p;
            any = true;
        }
    }
    return any;
}

/* How many of `left` cores the processes of this priority can have, if those of lower priorities
 * get their least, or one each if there are too few for that. */
static unsigned share_of(const struct rmd_snapshot *s, unsigned priority, unsigned left)
{
    unsigned long least = 0, others = 0, others_least = 0;
    for (unsigned i = 0; i < s->nprocs; i++) {
        unsigned lo = rmd_range_of(s, i).lo;
        if (s->needs[i].priority == priority)
            least += lo;
        others += s->needs[i].priority < priority;
        others_least += s->needs[i].priority < priority ? lo : 0;
    }
    if (least + others_least <= left)
        return left - (unsigned)others_least;
    unsigned most = others < left ? left - (unsigned)others : 0;
    return least < most ? (unsigned)least : most;
}

void rmd_prioritized(const struct rmd_policy *policy, const struct rmd_snapshot *s,
                     const uint64_t *launch, unsigned most, unsigned *target)
{
    if (s->nprocs > LIMIT_PROCS || !rmd_priorities_differ(s)) {
        rmd_limited(policy, s, launch, most, target);
        return;
    }
    unsigned left = s->ncores;
    for (unsigned p = UINT32_MAX; next_priority(s, p, &p);) {
        bool others[LIMIT_PROCS];
        uint64_t launches[LIMIT_PROCS];
        struct part part;
        struct rmd_snapshot level = *s;
        for (unsigned i = 0; i < s->nprocs; i++)
            others[i] = s->needs[i].priority != p;
        select_part(&part, s, launch, NULL, others);
        for (unsigned k = 0; k < part.count; k++)
            launches[k] = launch[part.index[k]];
        level.ncores = share_of(s, p, left);
        level.nprocs = part.count;
        level.needs = part.needs;
        if (level.ncores)
            rmd_limited(policy, &level, launches, most, part.target);
        else
            memset(part.target, 0, sizeof part.target);
        for (unsigned k = 0; k < part.count; k++) {
            inv_assert(part.target[k] <= left);
            left -= target[part.index[k]] = part.target[k];
        }
    }
}

bool rmd_priorities_move(const struct rmd_snapshot *s, const unsigned *target)
{
    for (unsigned p = UINT32_MAX; next_priority(s, p, &p);) {
        unsigned long owned = 0, wanted = 0;
        for (unsigned i = 0; i < s->nprocs; i++) {
            owned += s->needs[i].priority == p ? s->needs[i].owned : 0;
            wanted += s->needs[i].priority == p ? target[i] : 0;
        }
        if (owned != wanted)
            return true;
    }
    return false;
}
