/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rank.h - the processes of a snapshot as the policies that look at scalability see them:
 * work W, curve S, range; the time of process i on c cores is W_i / S_i(c).
 */
#ifndef RMD_RANK_H
#define RMD_RANK_H

#include "rmd/policy/curve.h"
#include "rmd/policy/policy.h"
#include "rmd/policy/arena.h"

struct rmd_rank {
    double work; /* > 0; relative to the largest of its group; if unknown, the group's mean */
    unsigned lo, hi;
    unsigned useful; /* lo <= useful <= hi: more cores than this bring nothing */
    unsigned owned;
    bool known; /* it has announced a graph */
    struct rmd_curve curve;
    struct rmd_delivered delivered; /* whole cores with RMD_WHOLE */
};

/* Processes that share cores in one way: member[first ... first + count). */
struct rmd_group {
    unsigned first, count;
    unsigned lo, hi, useful; /* sums of the members' */
    unsigned owned;
    double work;
    bool known; /* a member has announced a graph */
};

/* For how much a process's cores count: whole cores; what rmd knows that they deliver; or less than
 * that, if iteration times say so.  Iteration times compare the ranks of a job, so RMD_AS_SEEN
 * needs the grouping RMD_BY_JOB. */
enum rmd_slowed { RMD_WHOLE, RMD_AS_TOLD, RMD_AS_SEEN };

enum rmd_grouping { RMD_ONE_GROUP, RMD_BY_JOB, RMD_ALONE };

struct rmd_ranks {
    unsigned nranks, ngroups;
    struct rmd_rank *rank;   /* by process */
    struct rmd_group *group; /* without empty ones */
    unsigned *member;
    double *work; /* by process */
};

/* The ranks of a snapshot with at least one process, allocated from *arena.  If `slowed` is not
 * RMD_WHOLE the curves are those on the cores that the processes have, which deliver a part of a
 * core each. */
struct rmd_ranks rmd_ranks_of(const struct rmd_snapshot *snapshot, enum rmd_grouping grouping,
                              enum rmd_slowed slowed, struct rmd_arena *arena);

/*
 * The same, cached at the beginning of the snapshot's arena for the policy's gain
 * (rmd_snapshot.decided).  *arena becomes the part after it.  A policy that uses the arena without
 * this function must call rmd_ranks_invalidate at its end.
 */
struct rmd_ranks rmd_ranks_cache(const struct rmd_snapshot *snapshot, enum rmd_grouping grouping,
                                 enum rmd_slowed slowed, struct rmd_arena *arena);
void rmd_ranks_invalidate(const struct rmd_snapshot *snapshot);
/* The cached ranks; if there are none, ranks that are made now. */
struct rmd_ranks rmd_ranks_cached(const struct rmd_snapshot *snapshot, enum rmd_grouping grouping,
                                  enum rmd_slowed slowed, struct rmd_arena *arena);

/* What a core of the other processes delivers on average; all processes together have `cores`
 * cores, which deliver `whole`. */
double rmd_elsewhere(double cores, double whole, const struct rmd_delivered *own);

/* Time of the slowest member of a group with cores[] (by process); 0: the group is empty. */
double rmd_slowest(const struct rmd_ranks *ranks, const struct rmd_group *group,
                   const unsigned *cores);

/*
 * rmd_balance - distributes `cores` over a group so that its slowest member is as fast as possible,
 * then the next slowest, and so on; lo <= cores <= hi.  Writes the members' target[].
 */
void rmd_balance(const struct rmd_ranks *ranks, const struct rmd_group *group, unsigned cores,
                 unsigned *target, struct rmd_arena arena);

/* How rmd_greedy_allocate distributes cores over groups (greedy.c).  share[]: cores by group. */
struct rmd_greedy_options {
    unsigned cores;       /* at least the sum of the groups' lo */
    const double *weight; /* by group: its part of the cores when several groups gain the same */
    const unsigned *cap;  /* by group: the most cores from which a group without a graph gains */
    double give_away;     /* part of the best sum of speed-ups that may be lost to save cores */
};
/* Sets share[] of each group. */
void rmd_greedy_allocate(const struct rmd_ranks *ranks, const struct rmd_greedy_options *how,
                         unsigned *share, struct rmd_arena arena);

#endif
