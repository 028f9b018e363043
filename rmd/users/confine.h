/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * confine.h - confinement: the threads of a user's processes run on the user's CPUs only (rmd(8),
 * Enforcement).  rmd enforces it by CPU affinity (enforce.h) or by a cpuset (cgroup.h).
 *
 * The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_CONFINE_H
#define RMD_CONFINE_H

#include "libinvasive/base/cpus.h"
#include "rmd/domain/domain.h"
#include "rmd/config/settings.h"

/* Confinement of one user.  Zero-initialised: inactive. */
struct rmd_confinement {
    bool active;     /* processes are confined to `allowed` */
    bool whole_user; /* set by the caller: also confine processes that descend from no member */
    struct inv_cpus allowed, before; /* CPUs now, and before the last change */
    uint64_t due_ns;                 /* of the next rmd_confinement_check (rate_limit.h) */
    struct rmd_confinement *next;    /* in the list of active confinements */
    const struct rmd_domain *domain;
    /* group: control group of each member before it entered the user's cpuset, "" unknown.  home:
     * the group noted last, for processes whose own group is unknown */
    char *group[INV_MAX_SLOTS], *home;
    /* With cpusets: the user's cpuset could not be changed; and members confined by affinity
     * instead, either for that reason or because they cannot enter the cpuset */
    bool cpuset_stale, by_affinity[INV_MAX_SLOTS];
    struct inv_cpus cpus; /* that the cpuset should have */
};

/*
 * rmd_confinement_begin - chooses how processes are confined.
 *   cores   of the domains; some may be offline now
 *   always  there are other users: confine even while no core is drained or limited
 *   base    path of the control groups; anything else: rmd finds it (cgroup.h)
 * Returns 0, or -1 with errno.
 */
int rmd_confinement_begin(const struct inv_topology *cores, enum rmd_enforce how, bool always,
                          const char *base);
/* A core was drained or limited: confine from now on, as with `always`. */
void rmd_confinement_require(void);
/* Sets the CPUs that are offline.  The caller updates the confinements afterwards. */
void rmd_confinement_set_offline(const struct inv_cpus *cpus);

/*
 * rmd_confinement_update - applies a change of the user's cores (domain->grant).
 * rmd_confinement_add_member - confines a process that has joined.
 * rmd_confinement_check - periodic: moves threads back that have left their CPUs.  Takes at most a
 *   tenth of a processor's time.
 * rmd_confinement_remove_member - the process is no longer a member.  lives: it still runs; its
 *   pidfd is open.
 * rmd_confinement_lift - the user has no process left.
 * rmd_confinement_free - frees the memory.
 * rmd_confinement_check_nonmembers - periodic, after the checks of all users: confines processes
 *   that are not members, and removes control groups of users that have no process.
 * rmd_confinement_has_leftovers - true while such control groups exist.
 */
void rmd_confinement_update(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_add_member(struct rmd_domain *domain, struct rmd_confinement *confinement,
                                unsigned slot);
void rmd_confinement_check(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_remove_member(struct rmd_domain *domain, struct rmd_confinement *confinement,
                                   unsigned slot, bool lives);
void rmd_confinement_lift(struct rmd_domain *domain, struct rmd_confinement *confinement);
void rmd_confinement_free(struct rmd_confinement *confinement);
void rmd_confinement_check_nonmembers(void);
bool rmd_confinement_has_leftovers(void);

/* The list of active confinements; and the active one of a user, or NULL. */
const struct rmd_confinement *rmd_confinements(void);
const struct rmd_confinement *rmd_confinement_of(uid_t uid);

/* At exit, before users are freed: lifts the confinement of processes that are not members. */
void rmd_confinement_end(void);

#endif
