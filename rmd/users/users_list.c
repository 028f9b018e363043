/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_list.c - users, their policies, their first and last processes, and the periodic
 * checks.
 */
#define _GNU_SOURCE
#include "rmd/users/users_inside.h"
#include "libinvasive/base/assertion.h"
#include "rmd/domain/trace.h"
#include "rmd/host/online.h"
#include "rmd/host/subuid.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most idle users (without processes) that are remembered: for their reports, and for their own
 * orders.  Each takes some 100 KB, and reports, which report.c limits. */
enum { IDLE_USERS_MAX = 32, IDLE_WITH_ORDERS_MAX = 128 };

struct rmd_users rmd_users = {.nonmembers.timer.fd = -1,
                              .unmanaged.timer.fd = -1,
                              .formers.orders = -1,
                              .shared.rates.persons = &rmd_users.shared.persons};

struct rmd_shared *rmd_users_shared(void) { return &rmd_users.shared; }

bool rmd_user_is_active(const struct user *u)
{
    struct rmd_domain_counts n = rmd_domain_counts(u->domain);
    return n.live > n.stopped || u->joining || !rmd_users.options.several;
}

/* --- checks */

static void handle_process_left(void *context, unsigned slot, bool lives)
{
    struct user *u = context;
    rmd_confinement_remove_member(u->domain, &u->confinement, slot, lives);
}

/* Has another set of CPUs gone offline than before? */
bool rmd_users_cpus_changed(void)
{
    bool now[INV_MAX_CORES];
    unsigned n =
        rmd_online(rmd_users.options.sys_root, &rmd_users.topology, &rmd_users.cpuset, now);
    if (!memcmp(now, rmd_users.away, sizeof now))
        return false;
    rmd_log(RMD_NOTICE,
            "%u of %u CPUs are offline, or not in the cpuset of rmd any more (before: %u)", n,
            rmd_users.topology.ncores, rmd_users.naway);
    memcpy(rmd_users.away, now, sizeof rmd_users.away);
    rmd_users.naway = n;
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < rmd_users.topology.ncores && !rmd_users.topology.emulated; c++)
        if (rmd_users.away[c])
            inv_cpus_add(&cpus, (size_t)rmd_users.topology.os_cpu[c]);
    rmd_users.enforcement.offline = cpus;
    return true;
}

/* The timer runs while there are processes, or control groups to remove. */
void rmd_users_set_check_timer(void)
{
    bool needed = rmd_users_live() || rmd_enforcement_has_leftovers(&rmd_users.enforcement);
    unsigned ms = needed ? rmd_users.settings->check_interval_ms : 0;
    if (!rmd_users_live())
        rmd_unmanaged_forget(&rmd_users.unmanaged);
    if (ms == rmd_users.check_running_ms)
        return;
    rmd_ring_every(&rmd_users.check_timer, ms);
    rmd_users.check_running_ms = ms;
}

static void check_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    bool changed = rmd_users_cpus_changed() |
                   (rmd_users.options.several && rmd_subuid_check(&rmd_users.shared.persons));
    for (struct user *u = rmd_users.first; u; u = u->next) {
        changed |= rmd_domain_check(u->domain) && rmd_users.options.several;
        rmd_confinement_check(u->domain, &u->confinement);
    }
    for (struct user *u = rmd_users.first; u; u = u->next)
        rmd_quota_watch_follow(&u->quota);
    rmd_energy_sample(&rmd_users.shared.energy);
    rmd_nonmembers_scan(&rmd_users.nonmembers);
    if (rmd_users_live())
        rmd_unmanaged_sample(&rmd_users.unmanaged);
    rmd_enforcement_remove_leftovers(&rmd_users.enforcement);
    if (changed)
        rmd_users_divide();
    rmd_users_set_check_timer();
}

/* --- policies */

/* The policy of a user with this choice; own_choice NULL: none. */
static const struct rmd_policy *policy_by(uid_t uid, const struct rmd_policy *own_choice)
{
    struct rmd_user_settings said = rmd_users_settings(uid);
    bool own = said.given & 1u << RMD_KEY_POLICY;
    return own_choice       ? own_choice
           : rmd_users.chosen && !own ? rmd_users.chosen
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
    for (struct user *u = rmd_users.first; u; u = u->next)
        if (looks_at_delivery(u))
            rmd_domain_reconsider(u->domain);
}

/* While there is a policy that wants to know what cores deliver. */
void rmd_users_set_sampling(void)
{
    bool needed = false;
    for (struct user *u = rmd_users.first; u; u = u->next)
        needed |= rmd_user_is_active(u) && looks_at_delivery(u);
    rmd_machine_sample(rmd_users.options.machine, needed);
}

static void lift_confinement(struct user *u)
{
    if (u->confinement.active)
        rmd_nonmembers_changed(&rmd_users.nonmembers);
    rmd_confinement_lift(u->domain, &u->confinement);
}

struct rmd_machine_state *rmd_users_machine(void) { return rmd_users.options.machine; }

/* --- users */

static void free_user(struct user *u)
{
    struct user **link = &rmd_users.first;
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
    return !rmd_user_is_active(u) && !rmd_domain_live(u->domain) && !traced_by_another(u) &&
           !u->ordered.cores && !u->ordered.job_cores && !rmd_user_has_cores(u);
}

static bool has_own_orders(const struct user *u)
{
    return u->own.cores || u->own.job_cores || u->chosen;
}

/* Candidates of find_excess_user that are IDs of this person. */
static unsigned count_idle_ids(uid_t person)
{
    unsigned n = 0;
    for (const struct user *u = rmd_users.first; u; u = u->next)
        n += u->excess_candidate && rmd_user_person(u) == person;
    return n;
}

/* Of the idle users with (or without) own orders: NULL if there are at most `most`.  Else, of the
 * person with most of them, the one that has been idle for longest. */
static struct user *find_excess_user(bool with_orders, unsigned most)
{
    struct user *oldest = NULL;
    unsigned idle = 0, most_ids = 0;
    for (struct user *u = rmd_users.first; u; u = u->next)
        idle += u->excess_candidate = is_forgettable(u) && has_own_orders(u) == with_orders;
    if (idle <= most)
        return NULL;
    for (struct user *u = rmd_users.first; u; u = u->next) {
        unsigned ids = u->excess_candidate ? count_idle_ids(rmd_user_person(u)) : 0;
        if (!ids)
            continue;
        if (!oldest || ids > most_ids || (ids == most_ids && u->idle_since < oldest->idle_since)) {
            oldest = u;
            most_ids = ids;
        }
    }
    return oldest;
}

void rmd_users_forget_excess(void)
{
    struct user *u;
    bool orders = false;
    if (rmd_users.taking_over)
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
        rmd_users_save_orders(); /* or the next rmd would know again */
}

static void handle_domain_emptied(void *context)
{
    struct user *u = context;
    inv_assert(!rmd_domain_live(u->domain));
    u->idle_since = ++rmd_users.idle_number;
    if (rmd_users.options.several && !u->joining) {
        rmd_log(RMD_INFO, "user %u: the last process has gone", (unsigned)u->uid);
        lift_confinement(u);
        rmd_domain_drop_empty_table(u->domain);
        rmd_users_divide();
    }
    if (rmd_users.options.emptied && !rmd_users_live())
        rmd_users.options.emptied();
}

static void handle_table_changed(void *context, int table_fd, int state_fd)
{
    const struct user *u = context;
    if (rmd_users.options.store)
        rmd_users.options.store(u->uid, table_fd, state_fd);
}

void rmd_user_configure(struct user *u)
{
    struct rmd_user_settings own = rmd_users_settings(u->uid);
    if (own.policy != u->configured)
        u->chosen = NULL; /* the last word is the operator's */
    u->configured = own.policy;
    struct rmd_domain_rules rules = {.policy = policy_of(u),
                                     .tuning = rmd_users.settings->tuning,
                                     .reclaim_bound_us = rmd_users.settings->reclaim_bound_us,
                                     .lend_blocked = rmd_users.settings->lend_blocked,
                                     .max_job_cores = rmd_users_limits(u->uid).job_cores};
    rmd_domain_set_rules(u->domain, &rules);
    u->confinement.whole_user = own.whole_user && u->uid != 0; /* root's are the machine's own */
}

/* Adds a user that is served (rmd_users_served). */
static struct user *add_user(uid_t uid)
{
    struct user *u = rmd_users.options.several || !rmd_users.first ? calloc(1, sizeof *u) : NULL;
    if (!u)
        return NULL;
    const struct rmd_domain_options about = {
        .topology = &rmd_users.topology,
        .smt = rmd_users.settings->smt,
        .shared = &rmd_users.shared,
        .uid = uid,
        .procs_hint = rmd_users.options.procs_hint,
        .delivered = rmd_machine_delivered(rmd_users.options.machine),
        .saves_state = rmd_users.options.store != NULL,
        .leaves_to_checks = rmd_users.options.leaves_to_checks,
        .calls = {u, handle_domain_emptied, handle_process_left, rmd_users_handle_core_left,
                  handle_table_changed},
    };
    u->domain = rmd_domain_new(&about);
    if (!u->domain) {
        free(u);
        return NULL;
    }
    bool concerned = !rmd_users.topology.emulated || *rmd_users.options.sys_root;
    rmd_quota_watch_open(&u->quota, u->domain, concerned ? rmd_users.options.sys_root : NULL,
                         !rmd_users.options.several, rmd_users_handle_quota_changed);
    u->uid = uid;
    u->confinement.by = &rmd_users.enforcement;
    u->idle_since = ++rmd_users.idle_number;
    rmd_user_configure(u);
    struct user **link = &rmd_users.first;
    while (*link)
        link = &(*link)->next;
    *link = u;
    rmd_users_forget_excess();
    return u;
}

struct user *rmd_user_known(uid_t uid)
{
    struct user *u = rmd_users.first;
    while (u && u->uid != uid)
        u = u->next;
    return u;
}

struct user *rmd_user_find(uid_t uid)
{
    struct user *u = rmd_user_known(uid);
    return u ? u : add_user(uid);
}

static void use_subuids(const char *said)
{
    rmd_subuid_use(&rmd_users.shared.persons,
                   !*said ? "/etc/subuid" : strcmp(said, "none") ? said : NULL);
}

/* Begins to watch for unmanaged processes; not with emulated cores, which have no CPUs. */
static int begin_unmanaged(void)
{
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < rmd_users.topology.ncores && !rmd_users.topology.emulated; c++)
        inv_cpus_add(&cpus, (size_t)rmd_users.topology.os_cpu[c]);
    const struct rmd_unmanaged_domains domains = {rmd_users_each, rmd_users_known};
    return rmd_unmanaged_begin(&rmd_users.unmanaged, &cpus, &domains);
}

const struct rmd_unmanaged *rmd_users_unmanaged(void) { return &rmd_users.unmanaged; }

int rmd_users_open(const struct inv_topology *t, const struct rmd_settings *s,
                   const struct rmd_users_options *o)
{
    rmd_users.topology = *t;
    memcpy(rmd_users.cool_speed, t->speed, sizeof rmd_users.cool_speed);
    rmd_users.settings = s;
    rmd_users.options = *o;
    if (!rmd_cpuset(&rmd_users.cpuset))
        inv_cpus_clear(&rmd_users.cpuset);
    rmd_users.configured = s->all.policy;
    rmd_units_of(&rmd_users.units, &rmd_users.topology, s->smt);
    if (rmd_users.options.several)
        use_subuids(s->text[RMD_KEY_SUBUID]);
    if (!rmd_users.topology.emulated || *o->sys_root)
        rmd_energy_open(&rmd_users.shared.energy, o->sys_root, rmd_users.topology.ncores);
    if (rmd_enforcement_begin(&rmd_users.enforcement, &rmd_users.topology,
                              rmd_users.topology.emulated ? RMD_ENFORCE_NONE : s->enforce,
                              o->several, s->text[RMD_KEY_CGROUP]) ||
        rmd_nonmembers_begin(&rmd_users.nonmembers, &rmd_users.enforcement) ||
        begin_unmanaged() ||
        rmd_timer_open(&rmd_users.bound_timer, rmd_users_bound_timer_expired) ||
        rmd_timer_open(&rmd_users.check_timer, check_timer_expired) ||
        rmd_machine_watch(o->machine, &rmd_users.topology, o->sys_root, handle_sample,
                          rmd_users_limit_heat))
        return -1;
    if (rmd_users.options.several)
        return 0;
    if (!add_user(getuid()))
        return -1;
    rmd_quota_watch_first(&rmd_users.first->quota, 0);
    rmd_users_divide();
    return 0;
}

void rmd_users_close(void)
{
    rmd_nonmembers_end(&rmd_users.nonmembers);
    rmd_unmanaged_forget(&rmd_users.unmanaged);
    rmd_timer_close(&rmd_users.unmanaged.timer);
    rmd_users.options.store = NULL; /* stored tables are for the next rmd */
    while (rmd_users.first) {
        struct user *u = rmd_users.first;
        struct rmd_member member;
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
            if (rmd_domain_member(u->domain, s, &member))
                handle_process_left(u, s, true);
        lift_confinement(u);
        free_user(u);
    }
    rmd_trace_end(&rmd_users.shared);
}

static void add_policy_event(const struct user *u, const struct rmd_policy *before)
{
    const struct rmd_policy *now = rmd_domain_rules(u->domain)->policy;
    if (now != before)
        rmd_event(&rmd_users.shared.events,
                  (struct inv_event){.kind = INV_EVENT_POLICY, .uid = u->uid, .rank = -1},
                  now->name);
}

void rmd_users_reconfigured(void)
{
    if (rmd_users.settings->all.policy != rmd_users.configured)
        rmd_users.chosen = NULL;
    rmd_users.configured = rmd_users.settings->all.policy;
    for (struct user *u = rmd_users.first; u; u = u->next) {
        const struct rmd_policy *before = rmd_domain_rules(u->domain)->policy;
        rmd_user_configure(u);
        add_policy_event(u, before);
        rmd_domain_reconfigured(u->domain);
    }
    rmd_users_save_orders();
    rmd_users_divide();
    rmd_event(&rmd_users.shared.events,
              (struct inv_event){.kind = INV_EVENT_CONFIG, .uid = INV_UNSAID, .rank = -1}, NULL);
}

bool rmd_users_choose(uid_t uid, const struct rmd_policy *policy)
{
    struct user *u = rmd_user_find(uid);
    if (!u)
        return false;
    u->chosen = policy;
    if (rmd_users.options.several && uid == 0) {
        rmd_users.chosen = policy;
        rmd_log(RMD_INFO, "the policy of users without one of their own is %s", policy->name);
    }
    rmd_users_save_orders();
    for (u = rmd_users.first; u; u = u->next) {
        const struct rmd_policy *before = rmd_domain_rules(u->domain)->policy;
        rmd_domain_set_policy(u->domain, policy_of(u));
        add_policy_event(u, before);
    }
    rmd_users_set_sampling();
    return true;
}

const struct rmd_policy *rmd_users_policy(uid_t uid)
{
    const struct user *u = rmd_user_known(uid);
    return policy_by(uid, u ? u->chosen : NULL);
}

bool rmd_users_served(uid_t uid)
{
    return rmd_users.options.several || uid == getuid();
}

struct rmd_domain *rmd_users_domain(uid_t uid)
{
    struct user *u = rmd_user_find(uid);
    return u ? u->domain : NULL;
}

struct rmd_domain *rmd_users_known(uid_t uid)
{
    struct user *u = rmd_user_known(uid);
    return u ? u->domain : NULL;
}

static void log_first_process(const struct user *u, pid_t pid)
{
    uid_t person = rmd_user_person(u);
    if (person == u->uid)
        rmd_log(RMD_INFO, "user %u: a first process, %d", (unsigned)u->uid, (int)pid);
    else
        rmd_log(RMD_INFO, "user %u, a subordinate ID of user %u: a first process, %d",
                (unsigned)u->uid, (unsigned)person, (int)pid);
}

/* The CPUs of a process whose request says that it may use no others.  False: the request does not
 * say so; or (*none) the process has no CPU of rmd.  (In an rmd for several users the settings
 * decide.) */
static bool is_bound_to_cpus(pid_t pid, const struct inv_request *request, struct inv_cpus *cpus,
                             bool *none)
{
    *none = false;
    if (!request->confined || rmd_users.options.several || rmd_users.topology.emulated ||
        inv_cpus_get(pid, cpus))
        return false;
    *none = true;
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        *none &= !inv_cpus_has(cpus, (size_t)rmd_users.topology.os_cpu[c]);
    return !*none;
}

/* The launch has the CPUs of all its processes; NULL: all.  True when that makes a difference. */
static bool set_launch_cpus(const struct inv_cpus *cpus)
{
    bool first = !rmd_users_live(), changed = false;
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++) {
        bool its_own = !cpus || inv_cpus_has(cpus, (size_t)rmd_users.topology.os_cpu[c]);
        bool now = !its_own && (first || rmd_users.outside[c]);
        changed |= now != rmd_users.outside[c];
        rmd_users.outside[c] = now;
    }
    return changed;
}

int rmd_users_join(uid_t uid, pid_t pid, int pidfd, const struct inv_request *request)
{
    struct user *u = rmd_user_find(uid);
    struct inv_cpus cpus;
    bool first = u && !rmd_user_is_active(u), none;
    bool confined = is_bound_to_cpus(pid, request, &cpus, &none);
    bool changed = rmd_users.options.several && rmd_subuid_check(&rmd_users.shared.persons);
    int refused = !u ? ENOMEM : none ? EXDEV : first ? rmd_user_check_newcomer(u) : 0;
    if (refused) {
        close(pidfd);
        errno = refused;
        return -1;
    }
    u->joining = true;
    changed |= set_launch_cpus(confined ? &cpus : NULL);
    if ((changed | rmd_users_cpus_changed()) && !first)
        rmd_users_divide();
    if (!rmd_domain_live(u->domain))
        rmd_quota_watch_first(&u->quota, pid);
    if (first) {
        log_first_process(u, pid);
        rmd_users_divide();
    }
    int slot = rmd_domain_join(u->domain, pid, pidfd, request), error = errno;
    u->joining = false;
    if (slot >= 0)
        rmd_confinement_add_member(u->domain, &u->confinement, (unsigned)slot);
    else if (!rmd_user_is_active(u))
        rmd_users_divide();
    if (slot >= 0)
        rmd_quota_watch_follow(&u->quota);
    rmd_users_set_check_timer();
    errno = error;
    return slot;
}

/* --- operators */

struct rmd_domain *rmd_users_find(pid_t pid, uid_t uid, bool any, unsigned *slot)
{
    for (struct user *u = rmd_users.first; u; u = u->next) {
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
    if (rmd_users.options.several && idle != (n.stopped == n.live))
        rmd_users_divide();
    return count;
}

void rmd_users_each(void (*visit)(struct rmd_domain *, void *context), void *context)
{
    for (struct user *u = rmd_users.first; u; u = u->next)
        visit(u->domain, context);
}

const struct rmd_units *rmd_users_units(void)
{
    return &rmd_users.units;
}

void rmd_users_quota(uid_t uid, uint32_t *millicores, uint32_t *cores)
{
    const struct user *u = rmd_user_known(uid);
    *millicores = u ? (uint32_t)(rmd_quota_cores(&u->quota.quota) * 1000 + 0.5) : 0;
    *cores = u ? rmd_quota_watch_cores(&u->quota) : 0;
}

unsigned rmd_users_live(void)
{
    unsigned n = 0;
    for (struct user *u = rmd_users.first; u; u = u->next)
        n += rmd_domain_live(u->domain);
    return n;
}
