/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_inside.h - the users and the state of the division, for the files of users.h only:
 * users_list.c (users, policies, checks), users_divide.c, users_limits.c, users_orders.c,
 * users_takeover.c.
 */
#ifndef RMD_USERS_INSIDE_H
#define RMD_USERS_INSIDE_H

#include "rmd/users/users.h"
#include "libinvasive/base/cpus.h"
#include "rmd/config/persisted_orders.h"
#include "rmd/loop/loop.h"
#include "rmd/quota/quota_watch.h"
#include "rmd/users/confine.h"
#include "rmd/users/formers.h"
#include "rmd/users/machine.h"
#include "rmd/users/nonmembers.h"
#include "rmd/users/unmanaged.h"

struct user {
    struct user *next;
    uid_t uid;
    bool joining;          /* its first process is on its way */
    uint64_t idle_since;   /* idle_number when its last process ended */
    bool excess_candidate; /* for find_excess_user */
    const struct rmd_policy *configured, *chosen; /* by the file; by the user, NULL: none */
    /* by rmctl limit, of an operator and of the user itself; 0: no limit */
    struct rmd_limits ordered, own;
    unsigned reported_cores; /* by the last INV_EVENT_SHARE */
    struct rmd_domain *domain;
    struct rmd_confinement confinement;
    struct rmd_quota_watch quota;
};

/* All users, and the cores that are divided among them.  Only rmd's main thread reads and writes
 * this. */
extern struct rmd_users {
    const struct rmd_settings *settings;
    struct rmd_users_options options;
    struct inv_topology topology;
    struct rmd_units units;
    struct user *first; /* in order of their first request */
    uint64_t idle_number; /* increases each time a user becomes idle */
    struct rmd_enforcement enforcement;
    struct rmd_nonmembers nonmembers;
    struct rmd_unmanaged unmanaged;

    /* By core: the user that has it, the user that will have it, and the time when it was asked
     * back. */
    struct user *current_user[INV_MAX_CORES], *next_user[INV_MAX_CORES];
    uint64_t asked_ns[INV_MAX_CORES];
    struct inv_cpus cpuset; /* when rmd began */
    bool away[INV_MAX_CORES]; /* offline, or not in the cpuset any more: no user's */
    unsigned naway;
    bool hot[INV_MAX_CORES]; /* by unit: left out because of heat, the last ones of each chip */
    unsigned short cool_speed[INV_MAX_CORES]; /* by core: its speed in `topology` without heat */
    bool drained[INV_MAX_CORES]; /* whole units */
    /* No process of the launch was bound to them by another resource manager that binds all of its
     * processes.  Written when one joins, read when cores are divided; all false for several
     * users. */
    bool outside[INV_MAX_CORES];

    struct rmd_source bound_timer, check_timer;
    unsigned check_running_ms; /* interval of check_timer; 0: it does not run */
    bool taking_over; /* the living processes are not known yet: forget no user */
    bool recalling;   /* persisted orders are being read: do not save them meanwhile */
    /* Policy of users that have not chosen one: by the file; chosen by root, or NULL. */
    const struct rmd_policy *configured, *chosen;

    struct rmd_formers formers; /* what a former rmd has stored, until rmd_users_take_over */
    struct rmd_shared shared;
} rmd_users;

/*
 * rmd_user_known - the user of this ID, or NULL.
 * rmd_user_find - the same; made if there is none.  NULL: no memory.
 * rmd_user_is_active - has the user processes that can compute?  If all are stopped, other users
 * get its
 *                      cores.
 * rmd_user_configure - applies the settings, orders and policy choices to the user's domain.
 * rmd_users_forget_excess - forgets users without processes of which there are too many.
 * rmd_users_cpus_changed - finds which CPUs are away; true: others than before.
 * rmd_users_set_check_timer - runs check_timer while there is something to check.
 * rmd_users_set_sampling - measures what cores deliver while a policy asks for it.
 */
struct user *rmd_user_known(uid_t uid);
struct user *rmd_user_find(uid_t uid);
bool rmd_user_is_active(const struct user *u);
void rmd_user_configure(struct user *u);
void rmd_users_forget_excess(void);
bool rmd_users_cpus_changed(void);
void rmd_users_set_check_timer(void);
void rmd_users_set_sampling(void);

/*
 * users_limits.c: persons, and the limits of users.
 * rmd_user_person - the user's person: a user and its subordinate IDs are one.
 * rmd_users_settings - the settings of this ID by the file; if it has no section, those of the
 * person. rmd_users_limit_units - the limit of cores in force, in units, at least one.
 * rmd_user_most_units - the most units that this limit and a quota allow at the moment.
 */
uid_t rmd_user_person(const struct user *u);
struct rmd_user_settings rmd_users_settings(uid_t uid);
unsigned rmd_users_limit_units(uid_t uid);
unsigned rmd_user_most_units(const struct user *u);

/*
 * users_divide.c: which user has which core.
 * rmd_users_divide - divides the cores anew and moves those that have no holder any more.
 * rmd_users_unit_has_any - is a core of the unit in the set?
 * rmd_user_has_cores - has the user cores, or will it have some?
 * rmd_user_check_newcomer - 0, or an errno that says why the newcomer may have no processes: it
 * would
 *                           have no core (EUSERS; or EDQUOT, if its person has cores); or, if many
 *                           users are stopped, there is no place for its table.
 * The others handle what changes the division: a core has no holder any more, the reclaim bound of
 * a core has passed, a quota pays for another number of cores, heat leaves this of the cores.
 */
void rmd_users_divide(void);
bool rmd_users_unit_has_any(unsigned unit, const bool set[INV_MAX_CORES]);
bool rmd_user_has_cores(const struct user *u);
int rmd_user_check_newcomer(struct user *newcomer);
void rmd_users_handle_core_left(void *context);
void rmd_users_bound_timer_expired(struct rmd_source *source, uint32_t events);
void rmd_users_handle_quota_changed(void);
void rmd_users_limit_heat(const struct rmd_heat_limit *limit);

/* users_orders.c: saves the orders for the next rmd, or reads those of the former one. */
void rmd_users_save_orders(void);
void rmd_users_recall_orders(void);

#endif
