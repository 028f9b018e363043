/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * account.h - what users' requests take of the processor time of rmd's main thread.
 *
 * Whoever asks again and again shall not keep a core busy that computes for somebody: all requests
 * of a person (subuid.h) together take a tenth of a processor.  What they took is waited for, nine times as
 * long; a fifth of a second is granted at once, to who has asked little for a while, which is
 * enough for some hundred processes that join.  Only rmd's main thread calls what has a user.
 */
#ifndef RMD_ACCOUNT_H
#define RMD_ACCOUNT_H

#include <stdint.h>
#include <sys/types.h>

/* What is taken of a processor is one part in so many; the rest is waited for. */
enum { RMD_ACCOUNT_PART = 10 };

/* For whoever keeps an account of their own, as a bell does: with `due_ns` for what was taken
 * before, when more may be taken after `spent_ns` of processor time, of which `burst_ns` are granted at
 * once.  By inv_now_ns, as `now_ns`; never 0.  Pure. */
static inline uint64_t rmd_account_after(uint64_t due_ns, uint64_t now_ns, uint64_t spent_ns,
                                         uint64_t burst_ns)
{
    uint64_t granted = burst_ns * RMD_ACCOUNT_PART;
    uint64_t first = now_ns > granted ? now_ns - granted : 1;
    return (due_ns < first ? first : due_ns) + spent_ns * RMD_ACCOUNT_PART;
}

/* The same for one event of the loop's thread, with what users have at once; by now's clock. */
uint64_t rmd_account_add(uint64_t due_ns, uint64_t spent_ns);

/* Processor time of this thread, in nanoseconds.  Any thread. */
uint64_t rmd_account_clock(void);
/* For one event that took so long. */
void rmd_account_charge(uid_t uid, uint64_t ns);
/* When the user may have more, by inv_now_ns; mostly that has passed. */
uint64_t rmd_account_due_ns(uid_t uid);

#endif
