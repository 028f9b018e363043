/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users.h - a domain for each user, and the division of the machine's cores among those users
 * that have processes.  Only rmd's main thread calls these.
 */
#ifndef RMD_USERS_H
#define RMD_USERS_H

#include "domain.h"
#include "settings.h"

struct rmd_users_options {
    unsigned procs_hint;
    const char *sys_root;  /* see machine.h */
    bool several;          /* users; else only our own, who has all cores */
    void (*emptied)(void); /* the last process of all has gone; may be NULL */
    /* a table for this user, and what goes with it, are to be kept for the next rmd, or with -1 not any
     * more; may be NULL */
    void (*keep)(uid_t uid, int table_fd, int state_fd);
};

/* The settings stay the caller's, and where they are.  0, or -1 with errno. */
int rmd_users_open(const struct inv_topology *topology, const struct rmd_settings *settings,
                   const struct rmd_users_options *options);
void rmd_users_close(void);

/* The settings have changed, as far as they may. */
void rmd_users_reconfigured(void);

/* The policy of this user's domain from now on, until the settings say another one than they did;
 * of root, where there are several users, also of all that have not chosen and whose section does
 * not say one.  False: no memory. */
bool rmd_users_choose(uid_t uid, const struct rmd_policy *policy);

/* Does rmd serve processes of this user? */
bool rmd_users_served(uid_t uid);

/* The domain of this user, to look at; made when there is none.  NULL: no memory. */
struct rmd_domain *rmd_users_domain(uid_t uid);

/* rmd_domain_join in the domain of this user; also errno EUSERS: every core has a user already. */
int rmd_users_join(uid_t uid, pid_t pid, int pidfd, const struct inv_request *request);

/* rmd_users_take_back - a descriptor that a former rmd has had kept for this user: of its table, or of
 * what goes with it.  It is ours from here on.
 * rmd_users_adopt - all have been taken back: go on in them. */
void rmd_users_take_back(uid_t uid, bool state, int fd);
void rmd_users_adopt(void);

/* Processes of all users. */
unsigned rmd_users_live(void);

#endif
