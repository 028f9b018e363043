/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * account.c - see account.h.  An account is the time at which all will have been waited for.  One
 * of which that was long ago says as much as none, so there are only as many as users that ask at
 * the same time; when there are more, who owes the least is let off.
 */
#define _GNU_SOURCE
#include "account.h"
#include "now.h"
#include "subuid.h"

#include <stddef.h>
#include <time.h>

enum { ACCOUNTS = 64 };
enum { EVENT_NS = 10000 }; /* of each charge: what the loop takes, which nobody measures */
#define BURST_NS UINT64_C(200000000)

static struct account {
    uid_t uid;
    uint64_t due_ns; /* 0: nobody's */
} accounts[ACCOUNTS];

/* The user's; else the one that says least, which is another's. */
static struct account *account_of(uid_t uid)
{
    struct account *least = accounts;
    for (struct account *a = accounts; a < accounts + ACCOUNTS; a++) {
        if (a->due_ns && a->uid == uid)
            return a;
        if (a->due_ns < least->due_ns)
            least = a;
    }
    return least;
}

uint64_t rmd_account_add(uint64_t due_ns, uint64_t spent_ns)
{
    return rmd_account_after(due_ns, inv_now_ns(), spent_ns + EVENT_NS, BURST_NS);
}

uint64_t rmd_account_clock(void) { return inv_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void rmd_account_charge(uid_t user, uint64_t ns)
{
    uid_t uid = rmd_person(user);
    struct account *a = account_of(uid);
    uint64_t due = a->uid == uid ? a->due_ns : 0;
    *a = (struct account){uid, rmd_account_add(due, ns)};
}

uint64_t rmd_account_due_ns(uid_t user)
{
    uid_t uid = rmd_person(user);
    const struct account *a = account_of(uid);
    return a->uid == uid ? a->due_ns : 0;
}
