/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * share.h - how many units each user gets.  Each person gets an equal share, as far as its limit
 * allows, and the person's share is divided among its users in the same way.  A pure function.
 */
#ifndef RMD_SHARE_H
#define RMD_SHARE_H

#include "rmd/restart/stored_fd.h"

#include <sys/types.h>

enum { RMD_SHARES_MAX = RMD_STORED_USERS + 1 }; /* and a newcomer */

struct user; /* the caller's */

struct rmd_share {
    struct user *user;
    uid_t person;         /* users with the same one are one person */
    unsigned person_most; /* units that the person may have together */
    unsigned most, has;   /* units that the user may have; that it has now */
    unsigned units;       /* that it gets */
};

/* Sets share[i].units of n users, at most RMD_SHARES_MAX, which are 0 before.  If there are fewer
 * units than persons, persons that have units come first, then the others in the order of the
 * array. */
void rmd_share_units(struct rmd_share *share, unsigned n, unsigned units);

#endif
