/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fence.h - keeps the processes of a user to the cores that it may use (rmd(8), Enforcement), by
 * affinity or by a cpuset.  As domain.h, for who holds the loop's turn.
 */
#ifndef RMD_FENCE_H
#define RMD_FENCE_H

#include "cpus.h"
#include "domain.h"
#include "settings.h"


/* Of a user.  Zero-initialised: it stands nowhere. */
struct rmd_fence {
    bool stands;               /* around `allowed` */
    bool whole;                /* set by the caller: also around who comes from no member */
    struct inv_cpus allowed, before; /* now, and before the last change */
    uint64_t due_ns;           /* of rmd_fence_check (account.h) */
    struct rmd_fence *next;    /* that stands */
    const struct rmd_domain *domain;
    /* where a process was before it came into the user's cpuset, "" unknown; and the last that was
     * known, which is as good a place as can be had for those of whom it is not */
    char *group[INV_MAX_SLOTS], *home;
    /* Where cpusets do it, what they do not: the user's is not what it shall be; and who is kept by
     * affinity after all, for that or since it cannot be put into it. */
    bool loose, by_affinity[INV_MAX_SLOTS];
    struct inv_cpus cpus; /* that the cpuset shall have */
};

/*
 * rmd_fences_begin - how it is done.
 *   cores   of the domains: some may be offline now
 *   always  also while no cores have been drained or limited: there are other users
 *   base    of the control groups, a path, or anything else: rmd finds it (cgroup.h)
 * Returns 0, or -1 with errno.
 */
int rmd_fences_begin(const struct inv_topology *cores, enum rmd_enforce how, bool always,
                     const char *base);
/* Cores have been drained, or limited: from now on in any case. */
void rmd_fences_hold(void);
/* These CPUs are offline now; fences are moved after that. */
void rmd_fences_offline(const struct inv_cpus *cpus);

/*
 * rmd_fence_move - what the user may use has changed, as d->presence says.
 * rmd_fence_newcomer - a process has joined.
 * rmd_fence_check - now and then: threads that have got out are put back.  It takes a tenth of a
 *   processor's time at most.
 * rmd_fence_let_go - the process is no member any more; it may live, and has its pidfd still.
 * rmd_fence_open_up - no process is there any more.
 * rmd_fence_free - the memory.
 * rmd_fences_check - now and then, after the users' own: processes that are no members, and what users
 *   who have gone have left.
 * rmd_fences_untidy - is there something for that?
 */
void rmd_fence_move(struct rmd_domain *domain, struct rmd_fence *fence);
void rmd_fence_newcomer(struct rmd_domain *domain, struct rmd_fence *fence, unsigned slot);
void rmd_fence_check(struct rmd_domain *domain, struct rmd_fence *fence);
void rmd_fence_let_go(struct rmd_domain *domain, struct rmd_fence *fence, unsigned slot,
                      bool lives);
void rmd_fence_open_up(struct rmd_domain *domain, struct rmd_fence *fence);
void rmd_fence_free(struct rmd_fence *fence);
void rmd_fences_check(void);
bool rmd_fences_untidy(void);

/* All that stand; and that of a user, NULL: none does. */
const struct rmd_fence *rmd_fences(void);
const struct rmd_fence *rmd_fence_of(uid_t uid);

/* At the end, before users are forgotten: who is no member is kept from nothing. */
void rmd_fences_end(void);

#endif
