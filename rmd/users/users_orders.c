/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_orders.c - orders of operators and of users (rmctl drain, limit, policy, cool), and their
 * copy for the next rmd (persisted_orders.h).
 */
#include "rmd/users/users_inside.h"
#include "rmd/loop/log.h"

#include <string.h>

static struct rmd_persisted_user user_orders(const struct user *u)
{
    return (struct rmd_persisted_user){.uid = u->uid,
                                       .cores = u->ordered.cores,
                                       .job_cores = u->ordered.job_cores,
                                       .own_cores = u->own.cores,
                                       .own_job_cores = u->own.job_cores,
                                       .policy = rmd_persisted_policy(u->chosen, u->configured)};
}

static bool has_orders(const struct rmd_persisted_user *o)
{
    return o->cores || o->job_cores || o->own_cores || o->own_job_cores || *o->policy.chosen;
}

/* Saves the orders for the next rmd, after a change. */
void rmd_users_save_orders(void)
{
    struct rmd_persisted_orders now = {0};
    unsigned left_out = 0;
    if (!rmd_users.options.orders || rmd_users.recalling)
        return;
    now.nusers = 0;
    now.policy = rmd_persisted_policy(rmd_users.chosen, rmd_users.configured);
    rmd_persisted_set_drained(&now, &rmd_users.topology, rmd_users.drained);
    now.threshold = rmd_users.options.machine->heat.ordered;
    now.configured_threshold = rmd_users.settings->temperature_limit;
    for (const struct user *u = rmd_users.first; u; u = u->next) {
        struct rmd_persisted_user orders = user_orders(u);
        if (!has_orders(&orders))
            continue;
        if (now.nusers < RMD_PERSISTED_USERS)
            now.user[now.nusers++] = orders;
        else
            left_out++;
    }
    if (left_out)
        rmd_log(RMD_WARNING, "orders of %u users are not kept for a restart", left_out);
    rmd_persisted_save(rmd_users.options.orders, &now);
}

/* --- those of a former rmd */

static void recall_user(const struct rmd_persisted_user *was)
{
    struct user *u = rmd_users_served(was->uid) ? rmd_user_find(was->uid) : NULL;
    if (!u)
        return;
    u->ordered = (struct rmd_limits){was->cores, was->job_cores};
    u->own = (struct rmd_limits){was->own_cores, was->own_job_cores};
    u->chosen = rmd_persisted_chosen(&was->policy, u->configured);
    if (was->cores || was->job_cores || was->own_cores || was->own_job_cores)
        rmd_users.enforcement.required = true;
}

void rmd_users_recall_orders(void)
{
    if (rmd_users.formers.orders < 0)
        return;
    struct rmd_persisted *orders = rmd_users.options.orders;
    const struct rmd_persisted_orders *was = rmd_persisted_load(orders, rmd_users.formers.orders);
    rmd_users.formers.orders = -1;
    if (!was) {
        rmd_log(RMD_WARNING,
                "the former rmd's orders are of another version, or none: nothing is drained, and "
                "limits and policies are the configuration's; its power cap stays");
        orders->store(-1);
        return;
    }
    if (rmd_persisted_get_drained(was, &rmd_users.topology, &rmd_users.units, rmd_users.drained))
        rmd_users.enforcement.required = true;
    rmd_users.recalling = true;
    for (unsigned i = 0; i < was->nusers; i++)
        recall_user(&was->user[i]);
    rmd_users.recalling = false;
    rmd_users.chosen = rmd_persisted_chosen(&was->policy, rmd_users.configured);
    if (was->configured_threshold == rmd_users.settings->temperature_limit)
        rmd_users.options.machine->heat.ordered = was->threshold;
    for (struct user *u = rmd_users.first; u; u = u->next)
        rmd_user_configure(u);
    if (was->ndrained || was->nusers || *was->policy.chosen)
        rmd_log(RMD_NOTICE,
                "the former rmd's orders: %u cores drained, limits or policies of %u users, "
                "policy %s",
                was->ndrained, was->nusers,
                *was->policy.chosen ? was->policy.chosen : "as configured");
    rmd_users_save_orders(); /* as far as they still hold */
}

/* --- operators */

unsigned rmd_users_drained(uint64_t set[INV_CORE_WORDS])
{
    unsigned n = 0;
    memset(set, 0, INV_CORE_WORDS * sizeof *set);
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (rmd_users.drained[c]) {
            inv_set_add(set, c);
            n++;
        }
    return n;
}

void rmd_users_offline(uint64_t set[INV_CORE_WORDS])
{
    memset(set, 0, INV_CORE_WORDS * sizeof *set);
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (rmd_users_unit_has_any(rmd_users.units.of[c], rmd_users.away))
            inv_set_add(set, c);
}

unsigned rmd_users_left(const uint64_t set[INV_CORE_WORDS])
{
    unsigned n = 0;
    if (rmd_users_cpus_changed())
        rmd_users_divide();
    for (unsigned k = 0; k < rmd_users.units.count; k++)
        n += !rmd_users_unit_has_any(k, rmd_users.away) &&
             !inv_set_has(set, rmd_users.units.first[k]);
    return n;
}

/* Units are these persons'. */
static unsigned count_persons(void)
{
    unsigned n = 0;
    for (struct user *u = rmd_users.first; u; u = u->next) {
        bool first = rmd_user_is_active(u);
        for (struct user *v = rmd_users.first; first && v != u; v = v->next)
            first = !rmd_user_is_active(v) || rmd_user_person(v) != rmd_user_person(u);
        n += first;
    }
    return n;
}

unsigned rmd_users_needed(void)
{
    unsigned n = count_persons();
    return n ? n : 1;
}

void rmd_users_drain(const uint64_t set[INV_CORE_WORDS], bool undo)
{
    rmd_users.enforcement.required = true;
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (inv_set_has(set, c))
            rmd_users.drained[c] = !undo;
    rmd_users_save_orders();
    rmd_users_divide();
}

bool rmd_users_cool(unsigned degrees)
{
    struct rmd_machine_state *m = rmd_users.options.machine;
    if (!rmd_heat_keep_below(&m->heat, degrees))
        return false;
    m->heat.ordered = degrees == rmd_users.settings->temperature_limit ? 0
                      : degrees                                        ? degrees
                                                                       : RMD_PERSISTED_OFF;
    rmd_users_save_orders();
    return true;
}

bool rmd_users_order(uid_t uid, bool operator, const struct rmd_limits *order)
{
    struct user *u = rmd_user_find(uid);
    if (!u)
        return false;
    *(operator? &u->ordered : &u->own) = *order;
    rmd_users.enforcement.required = true;
    rmd_users_save_orders();
    for (struct user *v = rmd_users.first; v; v = v->next) {
        if (v != u && rmd_user_person(v) != uid)
            continue;
        rmd_user_configure(v);
        rmd_domain_reconfigured(v->domain);
    }
    rmd_users_divide();
    return true;
}
