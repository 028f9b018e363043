/* SPDX-License-Identifier: GPL-3.0-or-later */
/* policy_worth.c - hysteresis: what a move must bring; see policy.h. */
#include "rmd/policy/policy.h"

/* Must process i move, whatever it gains? */
static bool must_move(const struct rmd_snapshot *s, unsigned i)
{
    const struct rmd_need *need = &s->needs[i];
    struct rmd_range r = rmd_range_of(s, i);
    return need->owned < r.lo || need->owned > r.hi;
}

bool rmd_policy_worthwhile(const struct rmd_policy *policy, const struct rmd_snapshot *s,
                           const unsigned *target)
{
    unsigned long owned = 0, wanted = 0, moves = 0;
    for (unsigned i = 0; i < s->nprocs; i++) {
        owned += s->needs[i].owned;
        wanted += target[i];
        if (target[i] == s->needs[i].owned)
            continue;
        if (must_move(s, i))
            return true;
        moves += target[i] > s->needs[i].owned ? target[i] - s->needs[i].owned : 0;
    }
    if (wanted != owned && !policy->saves_cores)
        return true; /* a process shall get an unowned core, or give one up to be unowned */
    double gain = policy->gain(s, target);
    return gain > RMD_WORTHWHILE &&
           gain * s->ncores * s->tuning.within_s >= (double)moves * s->tuning.move_cost_s;
}
