/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rate_limit.h - rate limit of the processor time that rmd spends for its users.
 *
 * Applications need the cores, so all requests of a person (subuid.h) together may take a tenth of
 * a processor of rmd's main thread.  rmd serves a person above that limit later.  A person that has
 * asked for little may take a fifth of a second at once: some hundred processes that join.
 *
 * Only the holder of the loop's turn uses a struct rmd_rate_limits.
 */
#ifndef RMD_RATE_LIMIT_H
#define RMD_RATE_LIMIT_H

#include "rmd/host/subuid.h"

#include <stdint.h>
#include <sys/types.h>

/* The limit, as the part 1 / RMD_RATE_LIMIT_DIVISOR of one processor. */
enum { RMD_RATE_LIMIT_DIVISOR = 10 };

/* A leaky bucket, stored as the time at which its debt is paid off.  Adds `spent_ns` of processor
 * time to a bucket with `due_ns`, and returns its new time, never 0.  The owner may spend again at
 * that time.  A bucket that was empty for long has a credit of `burst_ns`.  Times are by
 * inv_now_ns.  Pure. */
static inline uint64_t rmd_rate_limit_add(uint64_t due_ns, uint64_t now_ns, uint64_t spent_ns,
                                          uint64_t burst_ns)
{
    uint64_t granted = burst_ns * RMD_RATE_LIMIT_DIVISOR;
    uint64_t first = now_ns > granted ? now_ns - granted : 1;
    return (due_ns < first ? first : due_ns) + spent_ns * RMD_RATE_LIMIT_DIVISOR;
}

/* The same for one event of the loop's thread, now, with the burst of users. */
uint64_t rmd_rate_limit_add_event(uint64_t due_ns, uint64_t spent_ns);

/* Processor time of the calling thread, in nanoseconds.  Thread safe. */
uint64_t rmd_rate_limit_clock(void);

/* The buckets of all persons.  Zeros but for `persons` at first.  When more persons ask at the same
 * time than there are buckets, the bucket with the smallest debt is reused. */
enum { RMD_RATE_LIMIT_BUCKETS = 64 };
struct rmd_rate_limits {
    struct rmd_persons *persons;
    struct rmd_bucket {
        uid_t uid;
        uint64_t due_ns; /* 0: free */
    } buckets[RMD_RATE_LIMIT_BUCKETS];
};

/* Charges the user's person for one event that took `ns`. */
void rmd_rate_limit_charge(struct rmd_rate_limits *limits, uid_t uid, uint64_t ns);
/* The time (inv_now_ns) from which on rmd may serve the user; in the past for most. */
uint64_t rmd_rate_limit_due_ns(struct rmd_rate_limits *limits, uid_t uid);

#endif
