/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * budget.h - how many cores may compute, so that processes use the processor time of a quota and
 * the kernel never throttles them.
 *
 * The kernel gives a quota anew in each period, and stops all threads of the group when it is used
 * up.  Whole cores cannot use a quota of 1.5 cores: one core wastes a third of it, and with two all
 * threads are stopped for a quarter of the time.  So the number of cores changes within each
 * period. At any time as many may compute as can do so until its end: LEFT / REMAINING, rounded
 * down.  With 1.5 cores that is one in the first half of a period, and two in the second half.  A
 * core that is returned late then takes from the next period only, where the other cores come as
 * much later.
 *
 * Cores that may compute are not always used.  So the number is divided by the part of the time for
 * which they are expected to be, and that part falls while the quota is not used up.  If more is
 * used, only one core may compute as soon as it needs all that is left.
 *
 * Pure functions of the times in their arguments.
 */
#ifndef RMD_BUDGET_H
#define RMD_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Zeros at first. */
struct rmd_budget {
    uint64_t quota_ns, period_ns; /* for each period; quota_ns 0: no limit */
    unsigned all;                 /* cores without a quota */
    unsigned cores;               /* that may compute now, at least one */
    double use;                   /* part of their time that cores are expected to compute */
    bool cut; /* in this period the cores have computed more than expected */
    double reserve; /* part of the quota that is left to other processes of the group */

    uint64_t end_ns;   /* of this period, as far as known */
    uint64_t used_ns;  /* in this period */
    bool counted;                /* the following are known */
    uint64_t periods, throttled; /* the kernel's counts at the last look, and when a period began */
    bool found;                  /* the phase of the kernel's periods is known; it does not
                                    change */
    uint64_t seek_until_ns;      /* until when it is looked for; 0: it is not */
};

/* The figures of one look. */
struct rmd_budget_seen {
    uint64_t now_ns;
    uint64_t ran_ns;  /* processor time of the processes since the last look */
    bool counted;     /* the following are known */
    uint64_t periods, throttled;
};

/* Sets the quota.  There is none if quota_ns is 0 or enough for all cores, or there is one core
 * only. */
void rmd_budget_set(struct rmd_budget *budget, uint64_t quota_ns, uint64_t period_ns, unsigned all,
                    uint64_t now_ns);

/* Processes are about to begin: cores are expected to compute all the time. */
void rmd_budget_expect_all(struct rmd_budget *budget);

/* Decides budget->cores.  Returns the time of the next look. */
uint64_t rmd_budget_update(struct rmd_budget *budget, const struct rmd_budget_seen *seen);

#endif
