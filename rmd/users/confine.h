/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * confine.h - confinement: the threads of a user's processes run on the user's CPUs only
 * (rmd-users(7), ENFORCEMENT).  rmd enforces it by CPU affinity (enforce.h) or by a cpuset
 * (cgroup.h).
 *
 * The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_CONFINE_H
#define RMD_CONFINE_H

#include "libinvasive/base/cpus.h"
#include "rmd/domain/domain.h"
#include "rmd/config/settings.h"

struct rmd_confinement;

/* How the processes of all users are confined.  Zero-initialised before rmd_enforcement_begin. */
struct rmd_enforcement {
    enum rmd_enforce how;
    struct inv_cpus possible; /* CPUs that rmd may use, and those of its cores */
    struct inv_cpus offline;  /* CPUs that are offline; the caller sets it, and then updates the
                                 confinements */
    bool cpusets;             /* enforce by cpusets, not by affinity */
    bool required; /* false for an rmd of one user until a core is drained or limited: the caller
                      sets it then */
    struct rmd_confinement *first; /* of the active ones */
};

/* Confinement of one user.  Zero-initialised but for what the caller sets: inactive. */
struct rmd_confinement {
    struct rmd_enforcement *by; /* set by the caller */
    bool active;                /* processes are confined to `allowed` */
    bool whole_user; /* set by the caller: also confine processes that descend from no member */
    struct inv_cpus allowed, before; /* CPUs now, and before the last change */
    uint64_t due_ns;                 /* of the next rmd_confinement_check (rate_limit.h) */
    struct rmd_confinement *next;    /* in the list of active confinements */
    const struct rmd_domain *domain;
    /* group: control group of each member before it entered the user's cpuset, "" unknown.  origin:
     * the group noted last, for processes whose own group is unknown */
    char *group[INV_MAX_SLOTS], *origin;
    /* With cpusets: the user's cpuset could not be changed; and members confined by affinity
     * instead, either for that reason or because they cannot enter the cpuset */
    bool cpuset_stale, by_affinity[INV_MAX_SLOTS];
    struct inv_cpus cpus; /* that the cpuset should have */
};

/*
 * rmd_enforcement_begin - chooses how processes are confined.
 *   cores   of the domains; some may be offline now
 *   always  there are other users: confine even while no core is drained or limited
 *   base    path of the control groups; anything else: rmd finds it (cgroup.h)
 * Returns 0, or -1 with errno.
 */
int rmd_enforcement_begin(struct rmd_enforcement *enforcement, const struct inv_topology *cores,
                          enum rmd_enforce how, bool always, const char *base);

/*
 * rmd_confinement_update - applies a change of the user's cores.  True: its CPUs have changed, and
 *   so must the confinement of processes that are not members (nonmembers.h).
 * rmd_confinement_add_member - confines a process that has joined.
 * rmd_confinement_check - periodic: moves threads back that have left their CPUs.  Takes at most a
 *   tenth of a processor's time.
 * rmd_confinement_remove_member - the process is no longer a member.  lives: it still runs; its
 *   pidfd is open.
 * rmd_confinement_lift - the user has no process left.
 * rmd_confinement_free - frees the memory.
 * rmd_enforcement_remove_leftovers - periodic: removes control groups of users without a process.
 * rmd_enforcement_has_leftovers - true while such control groups exist.
 */
bool rmd_confinement_update(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_add_member(struct rmd_domain *domain, struct rmd_confinement *confinement,
                                unsigned slot);
void rmd_confinement_check(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_remove_member(struct rmd_domain *domain, struct rmd_confinement *confinement,
                                   unsigned slot, bool lives);
void rmd_confinement_lift(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_free(struct rmd_confinement *confinement);
void rmd_enforcement_remove_leftovers(const struct rmd_enforcement *enforcement);
bool rmd_enforcement_has_leftovers(const struct rmd_enforcement *enforcement);

/* The active confinement of a user, or NULL. */
const struct rmd_confinement *rmd_confinement_of(const struct rmd_enforcement *enforcement,
                                                 uid_t uid);

#endif
