/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * budget.c - see budget.h.  The kernel does not say when its period begins, but counts periods, and
 * each begins a whole number of periods after the first: the begin is sought once.
 */
#include "rmd/quota/budget.h"
#include "libinvasive/base/assertion.h"

#include <math.h>

#define SEEK_NS UINT64_C(1000000)   /* between looks for the begin of a period */
#define LEAST_NS UINT64_C(500000)   /* between other looks */
#define RETURN_NS UINT64_C(1000000) /* a core that is taken back may still be used so long */

/* RESERVE_*: parts of the quota that are not used.  The others: parts of a core's time, or of a
 * period. */
#define RESERVE_FIRST 0.04   /* the kernel gives each CPU 5 ms at a time, which it may not use up */
#define RESERVE_LEAST 0.015
#define RESERVE_MOST 0.5
#define RESERVE_STEP 0.01    /* more after a period that was throttled */
#define RESERVE_DECAY 0.9995 /* what is above the least is multiplied by it after a period without */
#define USED_UP 0.97         /* with less than this part of what a period allows, less use is expected of the next one */
#define USE_LEAST 0.01
#define LAST_GRANT 0.05 /* no further core so short before the end */

/* Cores that use no more than the quota in a whole period, and at least one. */
static unsigned whole_cores(const struct rmd_budget *b)
{
    uint64_t n = b->quota_ns / b->period_ns;
    return n ? (unsigned)n : 1;
}

void rmd_budget_expect_all(struct rmd_budget *b)
{
    b->use = 1;
    b->reserve = RESERVE_FIRST;
    b->cores = whole_cores(b);
}

void rmd_budget_set(struct rmd_budget *b, uint64_t quota_ns, uint64_t period_ns, unsigned all,
                    uint64_t now_ns)
{
    *b = (struct rmd_budget){.cores = all, .all = all};
    if (!quota_ns || quota_ns >= all * period_ns || all == 1)
        return;
    b->quota_ns = quota_ns;
    b->period_ns = period_ns;
    rmd_budget_expect_all(b);
    b->end_ns = now_ns + period_ns;
    b->seek_until_ns = now_ns + 2 * period_ns;
}

static double allowed_ns(const struct rmd_budget *b)
{
    return (double)b->quota_ns * (1 - b->reserve);
}

static void adapt_reserve(struct rmd_budget *b, bool throttled)
{
    if (throttled)
        b->reserve = fmin(RESERVE_MOST, b->reserve + RESERVE_STEP);
    else
        b->reserve = RESERVE_LEAST + (b->reserve - RESERVE_LEAST) * RESERVE_DECAY;
}

/* If cores were cut, and not in vain, they were used more than expected. */
static void adapt_use(struct rmd_budget *b)
{
    double part = (double)b->used_ns / allowed_ns(b);
    if (part < USED_UP)
        b->use = fmax(USE_LEAST, b->use * fmax(part, 0.5));
    else if (b->cut)
        b->use = (b->use + 1) / 2;
}

/* Late looks may miss whole periods. */
static void begin_period(struct rmd_budget *b, uint64_t now_ns)
{
    adapt_use(b);
    while (b->end_ns <= now_ns)
        b->end_ns += b->period_ns;
    b->used_ns = 0;
    b->cut = false;
    b->cores = whole_cores(b);
}

static void update_period(struct rmd_budget *b, const struct rmd_budget_seen *seen)
{
    bool known = seen->counted && b->counted;
    bool begun = known && seen->periods != b->periods;
    if (begun && b->seek_until_ns) {
        b->seek_until_ns = 0;
        b->end_ns = seen->now_ns;
        b->found = true;
    }
    if (begun)
        adapt_reserve(b, seen->throttled > b->throttled);
    if (begun || !known)
        b->throttled = seen->throttled;
    if (!seen->counted || seen->now_ns >= b->seek_until_ns)
        b->seek_until_ns = 0;
    /* the kernel counts no periods of a group that does not compute: seek again when it does */
    if (known && !b->found && !b->seek_until_ns && seen->now_ns >= b->end_ns &&
        (double)b->used_ns >= allowed_ns(b) / 2)
        b->seek_until_ns = seen->now_ns + 2 * b->period_ns;
    b->counted = seen->counted;
    b->periods = seen->periods;
}

/* Returns when to look again: when another core may compute, or all but one may not. */
static double decide(struct rmd_budget *b, double left, double remains)
{
    double use = b->cut ? 1 : b->use;
    bool grants = !b->seek_until_ns && remains > LAST_GRANT * (double)b->period_ns;
    if (grants && left / remains / use > b->cores)
        b->cores = (unsigned)fmin(b->all, left / remains / use);
    double spare = left - remains - (b->cores - 1) * (double)RETURN_NS;
    if (b->cores > 1 && spare <= 0 && use < 1) {
        b->cut = true;
        b->cores = 1;
        use = 1;
    }
    double wait = remains;
    if (b->cores < b->all)
        wait = fmin(wait, (b->cores + 1) * remains - left / use);
    if (b->cores > 1 && use < 1)
        wait = fmin(wait, spare / (b->cores - 1));
    return wait;
}

uint64_t rmd_budget_update(struct rmd_budget *b, const struct rmd_budget_seen *seen)
{
    if (!b->quota_ns)
        return 0;
    b->used_ns += seen->ran_ns;
    update_period(b, seen);
    if (seen->now_ns >= b->end_ns)
        begin_period(b, seen->now_ns);
    double remains = (double)(b->end_ns - seen->now_ns);
    double wait = decide(b, allowed_ns(b) - (double)b->used_ns, remains);
    inv_assert(b->cores >= 1 && b->cores <= b->all);
    uint64_t next = seen->now_ns + (wait > (double)LEAST_NS ? (uint64_t)wait : LEAST_NS);
    if (b->seek_until_ns && next > seen->now_ns + SEEK_NS)
        next = seen->now_ns + SEEK_NS;
    return next < b->end_ns ? next : b->end_ns;
}
