/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quota_watch.h - follows the quota that control groups set for the processes of a domain
 * (quota.h), and how many cores it pays for at the moment (budget.h).
 *
 * The processes of a launch are in rmd's own group.  For a user of the service the quota of each
 * process is read.  If one quota holds for all of them, the domain has the cores that this quota
 * pays for.  Else, as with containers, each process owns at most the whole cores of its quota,
 * which it shares with the other processes of its group.
 *
 * The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_QUOTA_WATCH_H
#define RMD_QUOTA_WATCH_H

#include "rmd/domain/domain.h"
#include "rmd/quota/quota.h"
#include "rmd/loop/loop.h"
#include "rmd/quota/budget.h"

struct rmd_quota_watch {
    struct rmd_source timer; /* runs while there are a quota and processes; fd -1: no quota yet */
    struct rmd_domain *domain;
    const char *root;
    bool own;             /* the quota is that of rmd's own group */
    void (*changed)(void); /* called when the number of cores has changed */
    unsigned told_cores;   /* number of cores at its last call */
    struct rmd_quota quota;
    struct rmd_budget budget;
    struct {
        pid_t pid;
        uint64_t ran_ns; /* at the last look */
        double cores;    /* that its quota pays for; 0: no quota */
        uint64_t group;  /* hash of the group with that quota */
    } process[INV_MAX_SLOTS];
};

/* rmd_quota_watch_open - prepares the watch of this domain.
 *   root  see quota.h.  NULL: no quota concerns these cores
 *   own   the processes are in rmd's own group, as those of one launch are; else the quota of each
 * one
 *         is read
 * rmd_quota_watch_close - ends it. */
void rmd_quota_watch_open(struct rmd_quota_watch *watch, struct rmd_domain *domain,
                          const char *root, bool own, void (*changed)(void));
void rmd_quota_watch_close(struct rmd_quota_watch *watch);

/* Periodic, and when a process has joined: has the quota changed? */
void rmd_quota_watch_follow(struct rmd_quota_watch *watch);
/* The same, when this process is about to be the domain's first one. */
void rmd_quota_watch_first(struct rmd_quota_watch *watch, pid_t pid);

/* Cores that may compute now; 0: no quota limits them.  Never fewer than processes: ranks that take
 * turns on a core lose more time than the kernel takes by stopping all of them at once. */
unsigned rmd_quota_watch_cores(const struct rmd_quota_watch *watch);

#endif
