/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rate_limit.c - see rate_limit.h.  Leaky bucket, stored as the time at which the user's debt is
 * paid off.  Entries in the past equal an empty one, so a fixed table suffices.
 */
#define _GNU_SOURCE
#include "rmd/host/rate_limit.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"

#include <time.h>

enum { EVENT_NS = 10000 };           /* added to each charge: the loop's own time is not measured */
#define BURST_NS UINT64_C(200000000) /* enough for some hundred joins */

/* The user's bucket, else the one with the smallest debt. */
static struct rmd_bucket *bucket_of(struct rmd_rate_limits *limits, uid_t uid)
{
    struct rmd_bucket *least = limits->buckets;
    for (struct rmd_bucket *b = least, *end = b + RMD_RATE_LIMIT_BUCKETS; b < end; b++) {
        if (b->due_ns && b->uid == uid)
            return b;
        if (b->due_ns < least->due_ns)
            least = b;
    }
    return least;
}

uint64_t rmd_rate_limit_add_event(uint64_t due_ns, uint64_t spent_ns)
{
    return rmd_rate_limit_add(due_ns, inv_now_ns(), spent_ns + EVENT_NS, BURST_NS);
}

uint64_t rmd_rate_limit_clock(void) { return inv_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void rmd_rate_limit_charge(struct rmd_rate_limits *limits, uid_t user, uint64_t ns)
{
    uid_t uid = rmd_person(limits->persons, user);
    struct rmd_bucket *b = bucket_of(limits, uid);
    uint64_t due = b->uid == uid ? b->due_ns : 0;
    *b = (struct rmd_bucket){uid, rmd_rate_limit_add_event(due, ns)};
    inv_assert(b->due_ns > 0 && b->due_ns >= due); /* a debt only grows by what is spent */
}

uint64_t rmd_rate_limit_due_ns(struct rmd_rate_limits *limits, uid_t user)
{
    uid_t uid = rmd_person(limits->persons, user);
    const struct rmd_bucket *b = bucket_of(limits, uid);
    return b->uid == uid ? b->due_ns : 0;
}
