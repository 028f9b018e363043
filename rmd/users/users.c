/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users.c - division of the cores among users.
 *
 * Each person with processes gets an equal share, as far as its limit allows.  Cores that no person
 * may have stay without user.  A person is a user with its subordinate user IDs (subuid.h), each of
 * which is a user with a table of its own.  The person's share is divided among those in the same
 * way.  Shares are of units (units.h): if the threads of a physical core are given out together,
 * they never belong to two users.
 *
 * A core moves to another domain in three steps.  It is withdrawn from the old domain's table.  Its
 * holder gives it up, or is expelled when the reclaim bound has passed, and the old user's threads
 * are confined.  Then it is admitted to the new domain's table, with all of its unit.  So a core
 * never has two holders, and no user sees another user's table.  Only an operator can map it,
 * read-only.
 */
#define _GNU_SOURCE
#include "rmd/users/users.h"
#include "rmd/users/confine.h"
#include "rmd/users/formers.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/cpus.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/users/machine.h"
#include "rmd/users/nonmembers.h"
#include "rmd/users/unmanaged.h"
#include "rmd/quota/quota_watch.h"
#include "libinvasive/base/now.h"
#include "rmd/host/online.h"
#include "rmd/users/share.h"
#include "rmd/config/persisted_orders.h"
#include "rmd/host/subuid.h"
#include "rmd/domain/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most idle users (without processes) that are remembered: for their reports, and for their own
 * orders.  Each takes some 100 KB, and reports, which report.c limits. */
enum { IDLE_USERS_MAX = 32, IDLE_WITH_ORDERS_MAX = 128 };

/* User IDs of a person that may have processes at a time, most of them stopped. */
enum { IDS_MAX = 64 };

struct user {
    struct user *next;
    uid_t uid;
    bool joining;          /* its first process is on its way */
    uint64_t idle_since;   /* of its last process's end: a number, see idle_number */
    bool excess_candidate; /* of find_excess_user */
    const struct rmd_policy *configured, *chosen; /* by the file; by the user, NULL: not */
    /* of rmctl limit, as the operator and as the user itself said; 0: nothing, or all */
    struct rmd_limits ordered, own;
    unsigned reported_cores; /* by the last INV_EVENT_SHARE */
    struct rmd_domain *domain;
    struct rmd_confinement confinement;
    struct rmd_quota_watch quota;
};

/* All users, and the cores that are divided among them.  Only rmd's main thread reads and writes
 * it. */
static struct {
    const struct rmd_settings *settings;
    struct rmd_users_options options;
    struct inv_topology topology;
    struct rmd_units units;
    struct user *first; /* in order of their first request */
    uint64_t idle_number; /* increases each time a user becomes idle */
    struct rmd_enforcement enforcement;
    struct rmd_nonmembers nonmembers;
    struct rmd_unmanaged unmanaged;

    /* By core: the user that has it, the user that is to have it, and the time when it was asked
     * back. */
    struct user *current_user[INV_MAX_CORES], *next_user[INV_MAX_CORES];
    uint64_t asked_ns[INV_MAX_CORES];
    struct inv_cpus cpuset; /* when rmd began */
    bool away[INV_MAX_CORES]; /* offline, or not in the cpuset any more: no user's */
    unsigned naway;
    unsigned hot; /* units that are left out because of heat: the last ones */
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
} users = {.nonmembers.timer.fd = -1,
           .unmanaged.timer.fd = -1,
           .formers.orders = -1,
           .shared.rates.persons = &users.shared.persons};

struct rmd_shared *rmd_users_shared(void) { return &users.shared; }

/* Has the user processes that can compute?  If they are all stopped, other users get its cores. */
static bool is_active(const struct user *u)
{
    struct rmd_domain_counts n = rmd_domain_counts(u->domain);
    return n.live > n.stopped || u->joining || !users.options.several;
}

/* The order of an operator replaces the configured limit; of that and the user's own limit the
 * smaller one holds.  0, or the greatest number of cores, means all. */
static unsigned effective_limit(unsigned configured_cores, unsigned ordered, unsigned own)
{
    unsigned most = ordered ? ordered : configured_cores;
    if (own && (!most || own < most))
        most = own;
    return most >= INV_MAX_CORES ? 0 : most;
}

static struct user *known_user(uid_t uid);

/* The user and its subordinate IDs are one. */
static uid_t person_of_id(uid_t uid)
{
    return users.options.several ? rmd_person(&users.shared.persons, uid) : uid;
}

static uid_t person_of(const struct user *u) { return person_of_id(u->uid); }

/* What the file says of this ID, or of the person where it says nothing of the ID. */
static struct rmd_user_settings settings_of(uid_t uid)
{
    struct rmd_user_settings said = rmd_config_user(users.settings, uid);
    if (!said.given && users.options.several)
        said = rmd_config_user(users.settings, person_of_id(uid));
    said.uid = uid;
    return said;
}

/* In units, one at least. */
static unsigned units_of_cores(unsigned limit)
{
    if (!limit || limit >= users.topology.ncores)
        return users.units.count;
    unsigned whole = limit * users.units.count / users.topology.ncores;
    return whole ? whole : 1;
}

static unsigned limit_of(uid_t uid)
{
    const struct user *u = known_user(uid);
    return units_of_cores(effective_limit(settings_of(uid).max_cores, u ? u->ordered.cores : 0,
                                          u ? u->own.cores : 0));
}

/* What limits and a quota leave of the units, at the moment. */
static unsigned most_units(const struct user *u)
{
    unsigned limit = limit_of(u->uid), paid = units_of_cores(rmd_quota_watch_cores(&u->quota));
    return paid < limit ? paid : limit;
}

/* --- checks */

static void handle_process_left(void *context, unsigned slot, bool lives)
{
    struct user *u = context;
    rmd_confinement_remove_member(u->domain, &u->confinement, slot, lives);
}

static void divide_cores(void);

/* Has another set of CPUs gone offline than before? */
static bool cpus_changed(void)
{
    bool now[INV_MAX_CORES];
    unsigned n = rmd_online(users.options.sys_root, &users.topology, &users.cpuset, now);
    if (!memcmp(now, users.away, sizeof now))
        return false;
    rmd_log(RMD_NOTICE, "%u of %u CPUs are offline, or not in the cpuset of rmd any more (before: %u)", n,
            users.topology.ncores, users.naway);
    memcpy(users.away, now, sizeof users.away);
    users.naway = n;
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < users.topology.ncores && !users.topology.emulated; c++)
        if (users.away[c])
            inv_cpus_add(&cpus, (size_t)users.topology.os_cpu[c]);
    users.enforcement.offline = cpus;
    return true;
}

/* The timer runs while there are processes, or control groups to remove. */
static void set_check_timer(void)
{
    bool needed = rmd_users_live() || rmd_enforcement_has_leftovers(&users.enforcement);
    unsigned ms = needed ? users.settings->check_interval_ms : 0;
    if (!rmd_users_live())
        rmd_unmanaged_forget(&users.unmanaged);
    if (ms == users.check_running_ms)
        return;
    rmd_ring_every(&users.check_timer, ms);
    users.check_running_ms = ms;
}

static void check_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    bool changed = cpus_changed() |
                   (users.options.several && rmd_subuid_check(&users.shared.persons));
    for (struct user *u = users.first; u; u = u->next) {
        changed |= rmd_domain_check(u->domain) && users.options.several;
        rmd_confinement_check(u->domain, &u->confinement);
    }
    for (struct user *u = users.first; u; u = u->next)
        rmd_quota_watch_follow(&u->quota);
    rmd_energy_sample(&users.shared.energy);
    rmd_nonmembers_scan(&users.nonmembers);
    if (rmd_users_live())
        rmd_unmanaged_sample(&users.unmanaged);
    rmd_enforcement_remove_leftovers(&users.enforcement);
    if (changed)
        divide_cores();
    set_check_timer();
}

/* --- policies */

/* The policy of a user with this choice; own_choice NULL: none. */
static const struct rmd_policy *policy_by(uid_t uid, const struct rmd_policy *own_choice)
{
    struct rmd_user_settings said = settings_of(uid);
    bool own = said.given & 1u << RMD_KEY_POLICY;
    return own_choice       ? own_choice
           : users.chosen && !own ? users.chosen
                            : said.policy;
}

static const struct rmd_policy *policy_of(const struct user *u)
{
    return policy_by(u->uid, u->chosen);
}

static bool looks_at_delivery(const struct user *u)
{
    return rmd_domain_rules(u->domain)->policy->looks_at_delivery;
}

static void handle_sample(void)
{
    for (struct user *u = users.first; u; u = u->next)
        if (looks_at_delivery(u))
            rmd_domain_reconsider(u->domain);
}

/* While there is a policy that wants to know what cores deliver. */
static void set_sampling(void)
{
    bool needed = false;
    for (struct user *u = users.first; u; u = u->next)
        needed |= is_active(u) && looks_at_delivery(u);
    rmd_machine_sample(users.options.machine, needed);
}

/* --- division */

static bool unit_has_any(unsigned unit, const bool set[INV_MAX_CORES])
{
    inv_assert(unit < users.units.count);
    for (unsigned c = users.units.first[unit]; c < users.units.first[unit + 1]; c++)
        if (set[c])
            return true;
    return false;
}

/* Units with a CPU that is offline or outside, drained units, and the last ones because of heat, are no user's: sets gone[], and
 * returns their number.  If no unit is left, drained ones are used, and as a last resort all. */
static unsigned units_away(bool gone[INV_MAX_CORES])
{
    for (int also_drained = 1; also_drained >= 0; also_drained--) {
        unsigned n = 0;
        for (unsigned k = 0; k < users.units.count; k++)
            n += gone[k] = unit_has_any(k, users.away) || unit_has_any(k, users.outside) ||
                           (also_drained && (users.drained[users.units.first[k]] ||
                                             k >= users.units.count - users.hot));
        if (n < users.units.count)
            return n;
    }
    memset(gone, false, INV_MAX_CORES * sizeof *gone);
    return 0;
}

static bool has_cores(const struct user *u)
{
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (users.current_user[c] == u || users.next_user[c] == u)
            return true;
    return false;
}

/* Users that have cores come first: a user whose processes continue may find that others have all
 * cores.  Returns the number of shares that have a unit. */
static unsigned compute_shares(struct rmd_share *share, unsigned gone)
{
    unsigned n = 0, with = 0;
    for (int had = 1; had >= 0; had--)
        for (struct user *u = users.first; u; u = u->next)
            if (is_active(u) && n < RMD_SHARES_MAX && has_cores(u) == had)
                share[n++] = (struct rmd_share){.user = u,
                                                .person = person_of(u),
                                                .person_most = limit_of(person_of(u)),
                                                .most = most_units(u)};
    for (unsigned k = 0; k < users.units.count; k++)
        for (unsigned i = 0; i < n; i++)
            share[i].has += users.next_user[users.units.first[k]] == share[i].user;
    inv_assert(gone < users.units.count);
    rmd_share_units(share, n, users.units.count - gone);
    for (unsigned i = 0; i < n; i++)
        if (share[i].units)
            share[with++] = share[i];
    inv_assert(with <= n && with <= users.units.count - gone);
    return with;
}

/* That the domain will have.  The only user has more at other times than a quota allows just now. */
static unsigned due_units(const struct rmd_share *share, unsigned units)
{
    const struct user *u = share->user;
    unsigned limit = limit_of(u->uid);
    return users.options.several ? share->units : limit < units ? limit : units;
}

/* Plans the next user of each core.  Units that are away belong to one more, imaginary user. */
static void plan_cores(void)
{
    struct rmd_share share[RMD_SHARES_MAX];
    struct rmd_placed placed[INV_MAX_CORES + 1];
    int owner[INV_MAX_CORES];
    bool is_gone[INV_MAX_CORES];
    unsigned gone = units_away(is_gone), n = compute_shares(share, gone);
    for (unsigned c = 0; c < users.topology.ncores; c++) {
        owner[c] = is_gone[users.units.of[c]] ? (int)n : RMD_NO_OWNER;
        for (unsigned i = 0; i < n && owner[c] == RMD_NO_OWNER; i++)
            if (users.next_user[c] == share[i].user)
                owner[c] = (int)i;
    }
    for (struct user *u = users.first; u; u = u->next)
        if (is_active(u))
            rmd_domain_set_due(u->domain, 0);
    for (unsigned i = 0; i < n; i++) {
        placed[i] = (struct rmd_placed){.target = share[i].units, .main_core = -1, .preferred = -1};
        rmd_domain_set_due(share[i].user->domain, due_units(&share[i], users.units.count - gone));
    }
    placed[n] = (struct rmd_placed){.target = gone, .main_core = -1, .preferred = -1};
    rmd_units_place(&users.units, owner, NULL, placed, n + (gone > 0));
    for (unsigned c = 0; c < users.topology.ncores; c++)
        inv_assert(owner[c] <= (int)n);
    for (unsigned c = 0; c < users.topology.ncores; c++)
        users.next_user[c] = owner[c] < 0 || owner[c] == (int)n ? NULL : share[owner[c]].user;
}

/* Gives the core to its next user, after the current one has left it. */
static void admit_core(unsigned core)
{
    struct user *u = users.next_user[core];
    inv_assert(!users.current_user[core] ||
               rmd_domain_grant(users.current_user[core]->domain, core) == RMD_NOT_GRANTED);
    users.current_user[core] = u;
    users.asked_ns[core] = 0;
    if (u)
        rmd_domain_admit(u->domain, core);
}

static uint64_t bound_ns(void) { return (uint64_t)users.settings->reclaim_bound_us * 1000; }

static void withdraw_core(unsigned core)
{
    if (users.current_user[core] == users.next_user[core]) {
        users.asked_ns[core] = 0;
        if (users.current_user[core])
            rmd_domain_admit(users.current_user[core]->domain, core); /* ends a revocation */
        return;
    }
    if (!users.current_user[core])
        return;
    bool left = rmd_domain_withdraw(users.current_user[core]->domain, core);
    if (!users.asked_ns[core] && !left)
        users.asked_ns[core] = inv_now_ns();
    if (users.asked_ns[core] && inv_now_ns() - users.asked_ns[core] >= bound_ns() && !left) {
        rmd_log(RMD_INFO, "user %u: core %u taken by force",
                (unsigned)users.current_user[core]->uid, core);
        rmd_domain_expel(users.current_user[core]->domain, core);
        left = true;
    }
    if (left)
        users.asked_ns[core] = 0;
}

/* Has the user that has the unit left all of it?  (Each core is looked at: that notes it.) */
static bool unit_is_left(unsigned unit)
{
    bool all = true;
    for (unsigned c = users.units.first[unit]; c < users.units.first[unit + 1]; c++)
        all &= !users.current_user[c] || rmd_domain_has_left(users.current_user[c]->domain, c);
    return all;
}

/* When the next bound passes. */
static void set_bound_timer(void)
{
    uint64_t first = 0;
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (users.asked_ns[c] && (!first || users.asked_ns[c] < first))
            first = users.asked_ns[c];
    rmd_ring_at(&users.bound_timer, first ? first + bound_ns() : 0);
}

static void add_share_events(void)
{
    for (struct user *u = users.first; u; u = u->next) {
        unsigned granted = rmd_domain_granted(u->domain);
        if (rmd_quota_watch_cores(&u->quota))
            continue;
        if (granted != u->reported_cores)
            rmd_event(&users.shared.events,
                      (struct inv_event){.kind = INV_EVENT_SHARE,
                                         .uid = u->uid,
                                         .rank = -1,
                                         .before = u->reported_cores,
                                         .after = granted},
                      NULL);
        u->reported_cores = granted;
    }
}

static void update_confinement(struct user *u)
{
    if (rmd_confinement_update(u->domain, &u->confinement))
        rmd_nonmembers_changed(&users.nonmembers);
}

static void lift_confinement(struct user *u)
{
    if (u->confinement.active)
        rmd_nonmembers_changed(&users.nonmembers);
    rmd_confinement_lift(u->domain, &u->confinement);
}

/* Make it as planned, as far as cores have been left. */
static void move_cores(void)
{
    for (unsigned c = 0; c < users.topology.ncores; c++)
        withdraw_core(c);
    for (struct user *u = users.first; u; u = u->next)
        update_confinement(u); /* before others get its cores */
    for (unsigned k = 0; k < users.units.count; k++) {
        unsigned first = users.units.first[k];
        if (users.current_user[first] != users.next_user[first] && unit_is_left(k))
            for (unsigned c = first; c < users.units.first[k + 1]; c++)
                admit_core(c);
    }
    for (struct user *u = users.first; u; u = u->next) {
        update_confinement(u);
        rmd_domain_share(u->domain);
    }
    add_share_events();
    set_bound_timer();
    set_check_timer();
    set_sampling();
}

static bool cores_are_moving(void)
{
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (users.current_user[c] != users.next_user[c])
            return true;
    return false;
}

static void handle_core_left(void *context)
{
    (void)context;
    if (cores_are_moving())
        move_cores();
}

static void bound_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (rmd_timer_rang(source) && cores_are_moving())
        move_cores();
}

static void divide_cores(void)
{
    plan_cores();
    move_cores();
}

/* The quota of a user pays for another number of cores than a moment ago. */
static void handle_quota_changed(void)
{
    users.enforcement.required = true;
    for (struct user *u = users.first; u; u = u->next)
        rmd_domain_set_paced(u->domain, rmd_quota_watch_cores(&u->quota) > 0);
    divide_cores();
}

/* This part of the units may be used because of heat, one at least. */
static void limit_heat(double part)
{
    unsigned hot = (unsigned)((1 - part) * users.units.count);
    if (hot == users.hot)
        return;
    users.hot = hot < users.units.count ? hot : users.units.count - 1;
    users.enforcement.required = true;
    divide_cores();
}

struct rmd_machine_state *rmd_users_machine(void) { return users.options.machine; }

/* --- users */

static void free_user(struct user *u)
{
    struct user **link = &users.first;
    while (*link != u) {
        inv_assert(*link != NULL); /* u is in the list */
        link = &(*link)->next;
    }
    *link = u->next;
    rmd_quota_watch_close(&u->quota);
    rmd_confinement_free(&u->confinement);
    rmd_domain_free(u->domain);
    free(u);
}

/* --- what was ordered */

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

/* Orders have changed: the next rmd shall know. */
static void save_orders(void)
{
    struct rmd_persisted_orders now = {0};
    unsigned left_out = 0;
    if (!users.options.orders || users.recalling)
        return;
    now.nusers = 0;
    now.policy = rmd_persisted_policy(users.chosen, users.configured);
    rmd_persisted_set_drained(&now, &users.topology, users.drained);
    now.threshold = users.options.machine->heat.ordered;
    now.configured_threshold = users.settings->temperature_limit;
    for (const struct user *u = users.first; u; u = u->next) {
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
    rmd_persisted_save(users.options.orders, &now);
}

/* An operator's trace stays for processes to come.  A trace of the user itself ends with the
 * user. */
static bool traced_by_another(const struct user *u)
{
    uid_t taker;
    return rmd_trace_taker(u->domain, &taker) && taker != u->uid;
}

/* Does the user have only reports, and orders and traces of its own?  A user with stopped processes
 * is not forgotten, nor one with limits by an operator: they would no longer hold. */
static bool is_forgettable(const struct user *u)
{
    return !is_active(u) && !rmd_domain_live(u->domain) && !traced_by_another(u) &&
           !u->ordered.cores && !u->ordered.job_cores && !has_cores(u);
}

static bool has_own_orders(const struct user *u)
{
    return u->own.cores || u->own.job_cores || u->chosen;
}

/* Candidates of find_excess_user that are IDs of this person. */
static unsigned count_idle_ids(uid_t person)
{
    unsigned n = 0;
    for (const struct user *u = users.first; u; u = u->next)
        n += u->excess_candidate && person_of(u) == person;
    return n;
}

/* Of the idle users with (or without) own orders: NULL if there are at most `most`.  Else, of the
 * person with most of them, the one that has been idle for longest. */
static struct user *find_excess_user(bool with_orders, unsigned most)
{
    struct user *oldest = NULL;
    unsigned idle = 0, most_ids = 0;
    for (struct user *u = users.first; u; u = u->next)
        idle += u->excess_candidate = is_forgettable(u) && has_own_orders(u) == with_orders;
    if (idle <= most)
        return NULL;
    for (struct user *u = users.first; u; u = u->next) {
        unsigned ids = u->excess_candidate ? count_idle_ids(person_of(u)) : 0;
        if (!ids)
            continue;
        if (!oldest || ids > most_ids || (ids == most_ids && u->idle_since < oldest->idle_since)) {
            oldest = u;
            most_ids = ids;
        }
    }
    return oldest;
}

static void forget_excess_users(void)
{
    struct user *u;
    bool orders = false;
    if (users.taking_over)
        return;
    while ((u = find_excess_user(false, IDLE_USERS_MAX)))
        free_user(u);
    inv_assert(!u);
    for (; (u = find_excess_user(true, IDLE_WITH_ORDERS_MAX)); orders = true) {
        rmd_log(RMD_NOTICE,
                "user %u: its own limits and policy are forgotten: %u users whose processes "
                "ended later have some, too",
                (unsigned)u->uid, (unsigned)IDLE_WITH_ORDERS_MAX);
        free_user(u);
    }
    if (orders)
        save_orders(); /* or the next rmd would know again */
}

static void handle_domain_emptied(void *context)
{
    struct user *u = context;
    inv_assert(!rmd_domain_live(u->domain));
    u->idle_since = ++users.idle_number;
    if (users.options.several && !u->joining) {
        rmd_log(RMD_INFO, "user %u: the last process has gone", (unsigned)u->uid);
        lift_confinement(u);
        rmd_domain_drop_empty_table(u->domain);
        divide_cores();
    }
    if (users.options.emptied && !rmd_users_live())
        users.options.emptied();
}

static void handle_table_changed(void *context, int table_fd, int state_fd)
{
    const struct user *u = context;
    if (users.options.store)
        users.options.store(u->uid, table_fd, state_fd);
}

static void configure_user(struct user *u)
{
    struct rmd_user_settings own = settings_of(u->uid);
    if (own.policy != u->configured)
        u->chosen = NULL; /* the last word is the operator's */
    u->configured = own.policy;
    struct rmd_domain_rules rules = {.policy = policy_of(u),
                                     .tuning = users.settings->tuning,
                                     .reclaim_bound_us = users.settings->reclaim_bound_us,
                                     .lend_blocked = users.settings->lend_blocked,
                                     .max_job_cores = rmd_users_limits(u->uid).job_cores};
    rmd_domain_set_rules(u->domain, &rules);
    u->confinement.whole_user = own.whole_user && u->uid != 0; /* root's are the machine's own */
}

/* One that is served, rmd_users_served. */
static struct user *add_user(uid_t uid)
{
    struct user *u = users.options.several || !users.first ? calloc(1, sizeof *u) : NULL;
    if (!u)
        return NULL;
    const struct rmd_domain_options about = {
        .topology = &users.topology,
        .smt = users.settings->smt,
        .shared = &users.shared,
        .uid = uid,
        .procs_hint = users.options.procs_hint,
        .delivered = rmd_machine_delivered(users.options.machine),
        .saves_state = users.options.store != NULL,
        .leaves_to_checks = users.options.leaves_to_checks,
        .calls = {u, handle_domain_emptied, handle_process_left, handle_core_left,
                  handle_table_changed},
    };
    u->domain = rmd_domain_new(&about);
    if (!u->domain) {
        free(u);
        return NULL;
    }
    bool concerned = !users.topology.emulated || *users.options.sys_root;
    rmd_quota_watch_open(&u->quota, u->domain, concerned ? users.options.sys_root : NULL,
                         !users.options.several, handle_quota_changed);
    u->uid = uid;
    u->confinement.by = &users.enforcement;
    u->idle_since = ++users.idle_number;
    configure_user(u);
    struct user **link = &users.first;
    while (*link)
        link = &(*link)->next;
    *link = u;
    forget_excess_users();
    return u;
}

static struct user *known_user(uid_t uid)
{
    struct user *u = users.first;
    while (u && u->uid != uid)
        u = u->next;
    return u;
}

static struct user *find_user(uid_t uid)
{
    struct user *u = known_user(uid);
    return u ? u : add_user(uid);
}

static void use_subuids(const char *said)
{
    rmd_subuid_use(&users.shared.persons,
                   !*said ? "/etc/subuid" : strcmp(said, "none") ? said : NULL);
}

/* Emulated cores are no CPUs on which processes could be. */
static int begin_unmanaged(void)
{
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < users.topology.ncores && !users.topology.emulated; c++)
        inv_cpus_add(&cpus, (size_t)users.topology.os_cpu[c]);
    const struct rmd_unmanaged_domains domains = {rmd_users_each, rmd_users_known};
    return rmd_unmanaged_begin(&users.unmanaged, &cpus, &domains);
}

const struct rmd_unmanaged *rmd_users_unmanaged(void) { return &users.unmanaged; }

int rmd_users_open(const struct inv_topology *t, const struct rmd_settings *s,
                   const struct rmd_users_options *o)
{
    users.topology = *t;
    users.settings = s;
    users.options = *o;
    if (!rmd_cpuset(&users.cpuset))
        inv_cpus_clear(&users.cpuset);
    users.configured = s->all.policy;
    rmd_units_of(&users.units, &users.topology, s->smt);
    if (users.options.several)
        use_subuids(s->text[RMD_KEY_SUBUID]);
    if (!users.topology.emulated || *o->sys_root)
        rmd_energy_open(&users.shared.energy, o->sys_root, users.topology.ncores);
    if (rmd_enforcement_begin(&users.enforcement, &users.topology,
                              users.topology.emulated ? RMD_ENFORCE_NONE : s->enforce, o->several,
                              s->text[RMD_KEY_CGROUP]) ||
        rmd_nonmembers_begin(&users.nonmembers, &users.enforcement) ||
        begin_unmanaged() ||
        rmd_timer_open(&users.bound_timer, bound_timer_expired) ||
        rmd_timer_open(&users.check_timer, check_timer_expired) ||
        rmd_machine_watch(o->machine, &users.topology, o->sys_root, handle_sample, limit_heat))
        return -1;
    if (users.options.several)
        return 0;
    if (!add_user(getuid()))
        return -1;
    rmd_quota_watch_first(&users.first->quota, 0);
    divide_cores();
    return 0;
}

void rmd_users_close(void)
{
    rmd_nonmembers_end(&users.nonmembers);
    rmd_unmanaged_forget(&users.unmanaged);
    rmd_timer_close(&users.unmanaged.timer);
    users.options.store = NULL; /* stored tables are for the next rmd */
    while (users.first) {
        struct user *u = users.first;
        struct rmd_member member;
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
            if (rmd_domain_member(u->domain, s, &member))
                handle_process_left(u, s, true);
        lift_confinement(u);
        free_user(u);
    }
    rmd_trace_end(&users.shared);
}

static void add_policy_event(const struct user *u, const struct rmd_policy *before)
{
    const struct rmd_policy *now = rmd_domain_rules(u->domain)->policy;
    if (now != before)
        rmd_event(&users.shared.events,
                  (struct inv_event){.kind = INV_EVENT_POLICY, .uid = u->uid, .rank = -1},
                  now->name);
}

void rmd_users_reconfigured(void)
{
    if (users.settings->all.policy != users.configured)
        users.chosen = NULL;
    users.configured = users.settings->all.policy;
    for (struct user *u = users.first; u; u = u->next) {
        const struct rmd_policy *before = rmd_domain_rules(u->domain)->policy;
        configure_user(u);
        add_policy_event(u, before);
        rmd_domain_reconfigured(u->domain);
    }
    save_orders();
    divide_cores();
    rmd_event(&users.shared.events,
              (struct inv_event){.kind = INV_EVENT_CONFIG, .uid = INV_UNSAID, .rank = -1}, NULL);
}

bool rmd_users_choose(uid_t uid, const struct rmd_policy *policy)
{
    struct user *u = find_user(uid);
    if (!u)
        return false;
    u->chosen = policy;
    if (users.options.several && uid == 0) {
        users.chosen = policy;
        rmd_log(RMD_INFO, "the policy of users without one of their own is %s", policy->name);
    }
    save_orders();
    for (u = users.first; u; u = u->next) {
        const struct rmd_policy *before = rmd_domain_rules(u->domain)->policy;
        rmd_domain_set_policy(u->domain, policy_of(u));
        add_policy_event(u, before);
    }
    set_sampling();
    return true;
}

const struct rmd_policy *rmd_users_policy(uid_t uid)
{
    const struct user *u = known_user(uid);
    return policy_by(uid, u ? u->chosen : NULL);
}

bool rmd_users_served(uid_t uid)
{
    return users.options.several || uid == getuid();
}

struct rmd_domain *rmd_users_domain(uid_t uid)
{
    struct user *u = find_user(uid);
    return u ? u->domain : NULL;
}

struct rmd_domain *rmd_users_known(uid_t uid)
{
    struct user *u = known_user(uid);
    return u ? u->domain : NULL;
}

/* Units are these persons'. */
static unsigned count_persons(void)
{
    unsigned n = 0;
    for (struct user *u = users.first; u; u = u->next) {
        bool first = is_active(u);
        for (struct user *v = users.first; first && v != u; v = v->next)
            first = !is_active(v) || person_of(v) != person_of(u);
        n += first;
    }
    return n;
}

/* 0, or why the newcomer may have no processes: it would be without a core (EUSERS; or EDQUOT,
 * where the person has some); or, where many are stopped, without a place for its table. */
static int check_newcomer(struct user *newcomer)
{
    struct rmd_share share[RMD_SHARES_MAX];
    bool gone[INV_MAX_CORES], has_share = false, known = false;
    unsigned n = 0, ids = 0;
    for (struct user *u = users.first; u; u = u->next) {
        bool same = person_of(u) == person_of(newcomer);
        n += rmd_domain_live(u->domain) > 0;
        ids += same && rmd_domain_live(u->domain) > 0;
        known |= same && is_active(u);
    }
    if (!rmd_domain_live(newcomer->domain) && n >= RMD_STORED_USERS)
        return EUSERS;
    if (!rmd_domain_live(newcomer->domain) && ids >= IDS_MAX)
        return EDQUOT;
    inv_assert(!newcomer->joining);
    newcomer->joining = true;
    n = compute_shares(share, units_away(gone));
    newcomer->joining = false;
    for (unsigned i = 0; i < n; i++)
        has_share |= share[i].user == newcomer;
    return has_share ? 0 : known ? EDQUOT : EUSERS;
}

static void log_first_process(const struct user *u, pid_t pid)
{
    uid_t person = person_of(u);
    if (person == u->uid)
        rmd_log(RMD_INFO, "user %u: a first process, %d", (unsigned)u->uid, (int)pid);
    else
        rmd_log(RMD_INFO, "user %u, a subordinate ID of user %u: a first process, %d",
                (unsigned)u->uid, (unsigned)person, (int)pid);
}

/* The CPUs of a process that says that it may use no others.  False: it does not say so, or has
 * none of ours, with *none set then.  (Of an rmd for several users the settings decide.) */
static bool is_bound_to_cpus(pid_t pid, const struct inv_request *request, struct inv_cpus *cpus,
                             bool *none)
{
    *none = false;
    if (!request->confined || users.options.several || users.topology.emulated ||
        inv_cpus_get(pid, cpus))
        return false;
    *none = true;
    for (unsigned c = 0; c < users.topology.ncores; c++)
        *none &= !inv_cpus_has(cpus, (size_t)users.topology.os_cpu[c]);
    return !*none;
}

/* The launch has the CPUs of all its processes; NULL: all.  True when that makes a difference. */
static bool set_launch_cpus(const struct inv_cpus *cpus)
{
    bool first = !rmd_users_live(), changed = false;
    for (unsigned c = 0; c < users.topology.ncores; c++) {
        bool its_own = !cpus || inv_cpus_has(cpus, (size_t)users.topology.os_cpu[c]);
        bool now = !its_own && (first || users.outside[c]);
        changed |= now != users.outside[c];
        users.outside[c] = now;
    }
    return changed;
}

int rmd_users_join(uid_t uid, pid_t pid, int pidfd, const struct inv_request *request)
{
    struct user *u = find_user(uid);
    struct inv_cpus cpus;
    bool first = u && !is_active(u), none, confined = is_bound_to_cpus(pid, request, &cpus, &none);
    bool changed = users.options.several && rmd_subuid_check(&users.shared.persons);
    int refused = !u ? ENOMEM : none ? EXDEV : first ? check_newcomer(u) : 0;
    if (refused) {
        close(pidfd);
        errno = refused;
        return -1;
    }
    u->joining = true;
    changed |= set_launch_cpus(confined ? &cpus : NULL);
    if ((changed | cpus_changed()) && !first)
        divide_cores();
    if (!rmd_domain_live(u->domain))
        rmd_quota_watch_first(&u->quota, pid);
    if (first) {
        log_first_process(u, pid);
        divide_cores();
    }
    int slot = rmd_domain_join(u->domain, pid, pidfd, request), error = errno;
    u->joining = false;
    if (slot >= 0)
        rmd_confinement_add_member(u->domain, &u->confinement, (unsigned)slot);
    else if (!is_active(u))
        divide_cores();
    if (slot >= 0)
        rmd_quota_watch_follow(&u->quota);
    set_check_timer();
    errno = error;
    return slot;
}

/* --- operators */

struct rmd_domain *rmd_users_find(pid_t pid, uid_t uid, bool any, unsigned *slot)
{
    for (struct user *u = users.first; u; u = u->next) {
        int s = any || u->uid == uid ? rmd_domain_slot(u->domain, pid) : -1;
        if (s >= 0) {
            *slot = (unsigned)s;
            return u->domain;
        }
    }
    return NULL;
}

unsigned rmd_users_suspend(struct rmd_domain *domain, unsigned slot, bool suspended)
{
    struct rmd_domain_counts n = rmd_domain_counts(domain);
    bool idle = n.stopped == n.live;
    unsigned count = rmd_domain_suspend(domain, slot, suspended);
    n = rmd_domain_counts(domain);
    if (users.options.several && idle != (n.stopped == n.live))
        divide_cores();
    return count;
}

void rmd_users_each(void (*visit)(struct rmd_domain *, void *context), void *context)
{
    for (struct user *u = users.first; u; u = u->next)
        visit(u->domain, context);
}

const struct rmd_units *rmd_users_units(void)
{
    return &users.units;
}

unsigned rmd_users_drained(uint64_t set[INV_CORE_WORDS])
{
    unsigned n = 0;
    memset(set, 0, INV_CORE_WORDS * sizeof *set);
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (users.drained[c]) {
            inv_set_add(set, c);
            n++;
        }
    return n;
}

void rmd_users_offline(uint64_t set[INV_CORE_WORDS])
{
    memset(set, 0, INV_CORE_WORDS * sizeof *set);
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (unit_has_any(users.units.of[c], users.away))
            inv_set_add(set, c);
}

unsigned rmd_users_left(const uint64_t set[INV_CORE_WORDS])
{
    unsigned n = 0;
    if (cpus_changed())
        divide_cores();
    for (unsigned k = 0; k < users.units.count; k++)
        n += !unit_has_any(k, users.away) && !inv_set_has(set, users.units.first[k]);
    return n;
}

void rmd_users_quota(uid_t uid, uint32_t *millicores, uint32_t *cores)
{
    const struct user *u = known_user(uid);
    *millicores = u ? (uint32_t)(rmd_quota_cores(&u->quota.quota) * 1000 + 0.5) : 0;
    *cores = u ? rmd_quota_watch_cores(&u->quota) : 0;
}

unsigned rmd_users_needed(void)
{
    unsigned n = count_persons();
    return n ? n : 1;
}

void rmd_users_drain(const uint64_t set[INV_CORE_WORDS], bool undo)
{
    users.enforcement.required = true;
    for (unsigned c = 0; c < users.topology.ncores; c++)
        if (inv_set_has(set, c))
            users.drained[c] = !undo;
    save_orders();
    divide_cores();
}

bool rmd_users_cool(unsigned degrees)
{
    struct rmd_machine_state *m = users.options.machine;
    if (!rmd_machine_cool(m, degrees))
        return false;
    m->heat.ordered = degrees == users.settings->temperature_limit ? 0 : degrees ? degrees : RMD_PERSISTED_OFF;
    save_orders();
    return true;
}

bool rmd_users_moving(void) { return cores_are_moving(); }

bool rmd_users_order(uid_t uid, bool operator, const struct rmd_limits *order)
{
    struct user *u = find_user(uid);
    if (!u)
        return false;
    *(operator? &u->ordered : &u->own) = *order;
    users.enforcement.required = true;
    save_orders();
    for (struct user *v = users.first; v; v = v->next) {
        if (v != u && person_of(v) != uid)
            continue;
        configure_user(v);
        rmd_domain_reconfigured(v->domain);
    }
    divide_cores();
    return true;
}

/* Of what is said of an ID and of its person, as of a limit and the user's own word. */
static struct rmd_limits limits_of_id(uid_t uid)
{
    struct rmd_user_settings said = settings_of(uid);
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
    const struct user *u = known_user(uid);
    return !u ? (struct rmd_limits){0} : operator ? u->ordered : u->own;
}

/* --- tables of a former rmd */

void rmd_users_receive_stored(uid_t uid, enum rmd_stored_kind what, int fd)
{
    rmd_formers_add(&users.formers, uid, what, fd);
}

void rmd_users_former_cores(struct inv_topology *t, const char *sys_root)
{
    rmd_formers_cores(&users.formers, t, sys_root);
}

static void recall_user(const struct rmd_persisted_user *was)
{
    struct user *u = rmd_users_served(was->uid) ? find_user(was->uid) : NULL;
    if (!u)
        return;
    u->ordered = (struct rmd_limits){was->cores, was->job_cores};
    u->own = (struct rmd_limits){was->own_cores, was->own_job_cores};
    u->chosen = rmd_persisted_chosen(&was->policy, u->configured);
    if (was->cores || was->job_cores || was->own_cores || was->own_job_cores)
        users.enforcement.required = true;
}

static void recall_orders(void)
{
    if (users.formers.orders < 0)
        return;
    struct rmd_persisted *orders = users.options.orders;
    const struct rmd_persisted_orders *was = rmd_persisted_load(orders, users.formers.orders);
    users.formers.orders = -1;
    if (!was) {
        rmd_log(RMD_WARNING,
                "orders of before are of another version, or none: nothing is drained, and "
                "limits and policies are the configuration's; a power cap of then stays");
        orders->store(-1);
        return;
    }
    if (rmd_persisted_get_drained(was, &users.topology, &users.units, users.drained))
        users.enforcement.required = true;
    users.recalling = true;
    for (unsigned i = 0; i < was->nusers; i++)
        recall_user(&was->user[i]);
    users.recalling = false;
    users.chosen = rmd_persisted_chosen(&was->policy, users.configured);
    if (was->configured_threshold == users.settings->temperature_limit)
        users.options.machine->heat.ordered = was->threshold;
    for (struct user *u = users.first; u; u = u->next)
        configure_user(u);
    if (was->ndrained || was->nusers || *was->policy.chosen)
        rmd_log(RMD_NOTICE,
                "orders of before: %u cores drained, limits or policies of %u users, policy %s",
                was->ndrained, was->nusers,
                *was->policy.chosen ? was->policy.chosen : "as configured");
    save_orders(); /* as far as they still hold */
}

/* Cores that the user has in its table stay the user's.  If two users have the same core, the first
 * one keeps it: in the other's table no process can compute on it any more. */
static void resume_cores(struct user *u)
{
    for (unsigned c = 0; c < users.topology.ncores; c++) {
        if (users.current_user[c] == u)
            users.current_user[c] = NULL;
        if (rmd_domain_grant(u->domain, c) == RMD_NOT_GRANTED)
            continue;
        if (users.current_user[c]) {
            rmd_domain_withdraw(u->domain, c);
            rmd_domain_expel(u->domain, c);
            continue;
        }
        users.current_user[c] = users.next_user[c] = u;
        users.asked_ns[c] = rmd_domain_grant(u->domain, c) == RMD_REVOKING ? inv_now_ns() : 0;
    }
}

static int take_over_user(struct user *u, const struct rmd_former *f)
{
    int n =
        f->table >= 0 && f->state >= 0 ? rmd_domain_take_over(u->domain, f->table, f->state) : -1;
    /* a domain with a table owns the descriptors of f, even if its last process has ended */
    if (rmd_domain_table(u->domain)) {
        rmd_log(RMD_NOTICE, "user %u: took back a core table with %d processes", (unsigned)f->uid,
                n);
        resume_cores(u);
        return n;
    }
    rmd_log(n ? RMD_WARNING : RMD_INFO, "user %u: a core table of before, %s", (unsigned)f->uid,
            !n ? "without processes"
            : errno == ESTALE
                ? "of other cores than now: its processes go on by themselves until they end"
                : "which is of another version or none: if it has processes they go on by "
                  "themselves until they end");
    if (f->table >= 0)
        close(f->table);
    if (f->state >= 0)
        close(f->state);
    if (users.options.store)
        users.options.store(f->uid, -1, -1);
    return 0;
}

void rmd_users_take_over(void)
{
    users.taking_over = true;
    recall_orders();
    for (unsigned i = 0; i < users.formers.count; i++) {
        errno = EPROTO;
        const struct rmd_former *f = &users.formers.item[i];
        struct user *u = rmd_users_served(f->uid) ? find_user(f->uid) : NULL;
        if (u)
            take_over_user(u, f);
    }
    users.formers.count = 0;
    users.taking_over = false;
    forget_excess_users();
    cpus_changed();
    divide_cores();
    for (struct user *u = users.first; u; u = u->next)
        if (rmd_domain_table(u->domain) && !rmd_domain_live(u->domain))
            rmd_domain_reset(u->domain); /* its last process ended during the takeover */
}

unsigned rmd_users_live(void)
{
    unsigned n = 0;
    for (struct user *u = users.first; u; u = u->next)
        n += rmd_domain_live(u->domain);
    return n;
}
