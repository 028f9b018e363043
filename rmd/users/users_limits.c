/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_limits.c - persons, and the limits of their users by settings, orders and quotas.
 */
#include "rmd/users/users_inside.h"
#include "rmd/host/subuid.h"

/* The order of an operator replaces the configured limit; of that and the user's own limit the
 * smaller one holds.  0, or the greatest number of cores, means all. */
static unsigned effective_limit(unsigned configured_cores, unsigned ordered, unsigned own)
{
    unsigned most = ordered ? ordered : configured_cores;
    if (own && (!most || own < most))
        most = own;
    return most >= INV_MAX_CORES ? 0 : most;
}

/* The user and its subordinate IDs are one. */
static uid_t person_of_id(uid_t uid)
{
    return rmd_users.options.several ? rmd_person(&rmd_users.shared.persons, uid) : uid;
}

uid_t rmd_user_person(const struct user *u) { return person_of_id(u->uid); }

struct rmd_user_settings rmd_users_settings(uid_t uid)
{
    struct rmd_user_settings said = rmd_config_user(rmd_users.settings, uid);
    if (!said.given && rmd_users.options.several)
        said = rmd_config_user(rmd_users.settings, person_of_id(uid));
    said.uid = uid;
    return said;
}

/* In units, one at least. */
static unsigned units_of_cores(unsigned limit)
{
    if (!limit || limit >= rmd_users.topology.ncores)
        return rmd_users.units.count;
    unsigned whole = limit * rmd_users.units.count / rmd_users.topology.ncores;
    return whole ? whole : 1;
}

unsigned rmd_users_limit_units(uid_t uid)
{
    const struct user *u = rmd_user_known(uid);
    return units_of_cores(effective_limit(rmd_users_settings(uid).max_cores,
                                          u ? u->ordered.cores : 0, u ? u->own.cores : 0));
}

unsigned rmd_user_most_units(const struct user *u)
{
    unsigned limit = rmd_users_limit_units(u->uid);
    unsigned paid = units_of_cores(rmd_quota_watch_cores(&u->quota));
    return paid < limit ? paid : limit;
}

/* The limits of one ID, by its settings and by the orders of an operator and of the user itself. */
static struct rmd_limits limits_of_id(uid_t uid)
{
    struct rmd_user_settings said = rmd_users_settings(uid);
    struct rmd_limits ordered = rmd_users_ordered(uid, true), own = rmd_users_ordered(uid, false);
    return (struct rmd_limits){
        effective_limit(said.max_cores, ordered.cores, own.cores),
        effective_limit(said.max_job_cores, ordered.job_cores, own.job_cores)};
}

struct rmd_limits rmd_users_limits(uid_t uid)
{
    struct rmd_limits id = limits_of_id(uid);
    struct rmd_limits person = limits_of_id(person_of_id(uid));
    return (struct rmd_limits){effective_limit(person.cores, 0, id.cores),
                               effective_limit(person.job_cores, 0, id.job_cores)};
}

struct rmd_limits rmd_users_ordered(uid_t uid, bool operator)
{
    const struct user *u = rmd_user_known(uid);
    return !u ? (struct rmd_limits){0} : operator ? u->ordered : u->own;
}
