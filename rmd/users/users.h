/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users.h - a domain for each user, and the division of the machine's cores among those users
 * that have processes.  Only rmd's main thread calls these.
 */
#ifndef RMD_USERS_H
#define RMD_USERS_H

#include "rmd/domain/domain.h"
#include "rmd/restart/stored_fd.h"
#include "rmd/config/settings.h"

struct rmd_machine_state; /* machine.h */
struct rmd_persisted; /* persisted_orders.h */
struct rmd_unmanaged; /* unmanaged.h */

struct rmd_users_options {
    unsigned procs_hint;
    const char *sys_root;  /* see machine.h */
    bool several;          /* serve all users; else only rmd's own, which has all cores */
    bool leaves_to_checks; /* a launcher waits for rmd's end, see rmd_domain_options */
    void (*emptied)(void); /* the last process of all has gone; may be NULL */
    /* stores the descriptors of this user's core table and state for the next rmd; -1: drops the
     * stored ones; may be NULL */
    void (*store)(uid_t uid, int table_fd, int state_fd);
    struct rmd_persisted *orders; /* for the next rmd; may be NULL */
    struct rmd_machine_state *machine;
};

/* What the domains share. */
struct rmd_shared *rmd_users_shared(void);

/* The users read *settings until rmd_users_close: the caller owns it and keeps it where it is.
 * Returns 0, or -1 with errno. */
int rmd_users_open(const struct inv_topology *topology, const struct rmd_settings *settings,
                   const struct rmd_users_options *options);
void rmd_users_close(void);

/* The settings have changed, those that may (rmd_key_reloadable). */
void rmd_users_reconfigured(void);

/* Sets the policy of this user's domain, until the settings change theirs.  Root's choice, if there
 * are several users, also holds for users without a choice of their own and without one in their
 * section.  False: no memory. */
bool rmd_users_choose(uid_t uid, const struct rmd_policy *policy);

/* The policy of this user's domain, also of a user without a domain. */
const struct rmd_policy *rmd_users_policy(uid_t uid);

/* Does rmd serve processes of this user? */
bool rmd_users_served(uid_t uid);

/* The domain of this user; made if there is none.  NULL: no memory. */
struct rmd_domain *rmd_users_domain(uid_t uid);

/* The domain of this user; NULL: there is none. */
struct rmd_domain *rmd_users_known(uid_t uid);

/* rmd_domain_join in the domain of this user; also errno EUSERS: every core has a user already;
 * EXDEV: the process may use its own CPUs only, of which we have none. */
int rmd_users_join(uid_t uid, pid_t pid, int pidfd, const struct inv_request *request);

/* The most cores of a user, and of each of its launches.  0: all. */
struct rmd_limits {
    unsigned cores, job_cores;
};

/*
 * For rmctl (control.c).
 * rmd_users_find - the domain of which the process is a member, of this user or of any, and its
 *                  slot; NULL: it is no member.
 * rmd_users_each - calls `visit` for each user's domain.
 * rmd_users_cool - rmd_heat_keep_below by an operator's order, which the next rmd takes over.
 * rmd_users_drain - drains these cores, whole units; undo: users may have them again.
 * rmd_users_drained - the drained cores, and their number.
 * rmd_users_offline - cores that no user has, since a CPU of their unit is offline.
 * rmd_users_left - number of units that would be left if these cores were drained.
 * rmd_users_quota - the quota of the user's control groups in thousandths of a core, 0 none; and
 *                   how many cores may compute by it now, 0 all.
 * rmd_users_needed - number of units so that each person has one.
 * rmd_users_moving - does a core still have another user than planned?
 * rmd_users_order - limits of a served user.  By an operator: they override the configuration's
 *                   (INV_MAX_CORES: all cores).  By the user itself: at most what the operator
 *                   allows.  False: no memory.
 * rmd_users_ordered - the limits that were ordered so.
 * rmd_users_limits - the limits in force, also of an unknown user.
 * rmd_users_suspend - rmd_domain_suspend in that domain; other users get the cores of a user all of
 *                     whose processes are suspended.
 */
struct rmd_domain *rmd_users_find(pid_t pid, uid_t uid, bool any, unsigned *slot);
unsigned rmd_users_suspend(struct rmd_domain *domain, unsigned slot, bool suspended);
void rmd_users_each(void (*visit)(struct rmd_domain *, void *context), void *context);
const struct rmd_units *rmd_users_units(void);
void rmd_users_drain(const uint64_t set[INV_CORE_WORDS], bool undo);
bool rmd_users_cool(unsigned degrees);
unsigned rmd_users_drained(uint64_t set[INV_CORE_WORDS]);
void rmd_users_offline(uint64_t set[INV_CORE_WORDS]);
unsigned rmd_users_left(const uint64_t set[INV_CORE_WORDS]);
void rmd_users_quota(uid_t uid, uint32_t *millicores, uint32_t *cores);
unsigned rmd_users_needed(void);
bool rmd_users_moving(void);
bool rmd_users_order(uid_t uid, bool operator, const struct rmd_limits *order);
struct rmd_limits rmd_users_ordered(uid_t uid, bool operator);
struct rmd_limits rmd_users_limits(uid_t uid);

/*
 * rmd_users_receive_stored - receives a descriptor that a former rmd has stored, and owns it from
 *                            then on.  Before rmd_users_open.
 * rmd_users_former_cores - after all of these: sets *topology to the cores of the former rmd's
 *                          tables, if only CPUs that went offline or online make a difference.
 * rmd_users_take_over - after rmd_users_open: takes over these tables and the persisted orders.
 */
void rmd_users_receive_stored(uid_t uid, enum rmd_stored_kind what, int fd);
void rmd_users_former_cores(struct inv_topology *topology, const char *sys_root);
void rmd_users_take_over(void);

/* The machine that rmd_users_open was given. */
struct rmd_machine_state *rmd_users_machine(void);
/* Processes that compute beside the members (unmanaged.h), of all users. */
const struct rmd_unmanaged *rmd_users_unmanaged(void);

/* The number of members of all domains. */
unsigned rmd_users_live(void);

#endif
