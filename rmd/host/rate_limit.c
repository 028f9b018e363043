/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rate_limit.c - see rate_limit.h.  Leaky bucket, stored as the time at which the user's debt is
 * paid off.  Entries in the past equal an empty one, so a fixed table suffices.  When more users
 * ask at the same time than it has entries, the entry with the smallest debt is reused.
 */
#define _GNU_SOURCE
#include "rmd/host/rate_limit.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "rmd/host/subuid.h"

#include <time.h>

enum { BUCKETS = 64 };
enum { EVENT_NS = 10000 };           /* added to each charge: the loop's own time is not measured */
#define BURST_NS UINT64_C(200000000) /* enough for some hundred joins */

/* Only the holder of the loop's turn reads and writes it. */
static struct bucket {
    uid_t uid;
    uint64_t due_ns; /* 0: free */
} buckets[BUCKETS];

/* The user's bucket, else the one with the smallest debt. */
static struct bucket *bucket_of(uid_t uid)
{
    struct bucket *least = buckets;
    for (struct bucket *b = buckets; b < buckets + BUCKETS; b++) {
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

void rmd_rate_limit_charge(uid_t user, uint64_t ns)
{
    uid_t uid = rmd_person(user);
    struct bucket *b = bucket_of(uid);
    uint64_t due = b->uid == uid ? b->due_ns : 0;
    *b = (struct bucket){uid, rmd_rate_limit_add_event(due, ns)};
    inv_assert(b->due_ns > 0 && b->due_ns >= due); /* a debt only grows by what is spent */
}

uint64_t rmd_rate_limit_due_ns(uid_t user)
{
    uid_t uid = rmd_person(user);
    const struct bucket *b = bucket_of(uid);
    return b->uid == uid ? b->due_ns : 0;
}
