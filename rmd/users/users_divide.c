/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_divide.c - division of the cores among users.
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
#include "rmd/users/users_inside.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
#include "rmd/users/share.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* User IDs of a person that may have processes at a time, most of them stopped. */
enum { IDS_MAX = 64 };

bool rmd_users_unit_has_any(unsigned unit, const bool set[INV_MAX_CORES])
{
    inv_assert(unit < rmd_users.units.count);
    for (unsigned c = rmd_users.units.first[unit]; c < rmd_users.units.first[unit + 1]; c++)
        if (set[c])
            return true;
    return false;
}

/* Units with a CPU that is offline or outside, drained units, and those left out because of heat,
 * are no user's: sets gone[], and returns their number.  If no unit is left, drained ones are used,
 * and as a last resort all. */
static unsigned units_away(bool gone[INV_MAX_CORES])
{
    for (int also_drained = 1; also_drained >= 0; also_drained--) {
        unsigned n = 0;
        for (unsigned k = 0; k < rmd_users.units.count; k++)
            n += gone[k] = rmd_users_unit_has_any(k, rmd_users.away) ||
                           rmd_users_unit_has_any(k, rmd_users.outside) ||
                           (also_drained && (rmd_users.drained[rmd_users.units.first[k]] || rmd_users.hot[k]));
        if (n < rmd_users.units.count)
            return n;
    }
    memset(gone, false, INV_MAX_CORES * sizeof *gone);
    return 0;
}

bool rmd_user_has_cores(const struct user *u)
{
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (rmd_users.current_user[c] == u || rmd_users.next_user[c] == u)
            return true;
    return false;
}

/* Users that have cores come first: a user whose processes continue may find that others have all
 * cores.  Returns the number of shares that have a unit. */
static unsigned compute_shares(struct rmd_share *share, unsigned gone)
{
    unsigned n = 0, with = 0;
    for (int had = 1; had >= 0; had--)
        for (struct user *u = rmd_users.first; u; u = u->next)
            if (rmd_user_is_active(u) && n < RMD_SHARES_MAX && rmd_user_has_cores(u) == had)
                share[n++] = (struct rmd_share){
                    .user = u,
                    .person = rmd_user_person(u),
                    .person_most = rmd_users_limit_units(rmd_user_person(u)),
                    .most = rmd_user_most_units(u)};
    for (unsigned k = 0; k < rmd_users.units.count; k++)
        for (unsigned i = 0; i < n; i++)
            share[i].has += rmd_users.next_user[rmd_users.units.first[k]] == share[i].user;
    inv_assert(gone < rmd_users.units.count);
    rmd_share_units(share, n, rmd_users.units.count - gone);
    for (unsigned i = 0; i < n; i++)
        if (share[i].units)
            share[with++] = share[i];
    inv_assert(with <= n && with <= rmd_users.units.count - gone);
    return with;
}

/* Number of units that the domain will have.  The only user will have more than a quota allows at
 * this moment. */
static unsigned due_units(const struct rmd_share *share, unsigned units)
{
    const struct user *u = share->user;
    unsigned limit = rmd_users_limit_units(u->uid);
    return rmd_users.options.several ? share->units : limit < units ? limit : units;
}

/* Plans the next user of each core.  Units that are away belong to one more, imaginary user. */
static void plan_cores(void)
{
    struct rmd_share share[RMD_SHARES_MAX];
    struct rmd_placed placed[INV_MAX_CORES + 1];
    int owner[INV_MAX_CORES];
    bool is_gone[INV_MAX_CORES];
    unsigned gone = units_away(is_gone), n = compute_shares(share, gone);
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++) {
        owner[c] = is_gone[rmd_users.units.of[c]] ? (int)n : RMD_NO_OWNER;
        for (unsigned i = 0; i < n && owner[c] == RMD_NO_OWNER; i++)
            if (rmd_users.next_user[c] == share[i].user)
                owner[c] = (int)i;
    }
    for (struct user *u = rmd_users.first; u; u = u->next)
        if (rmd_user_is_active(u))
            rmd_domain_set_due(u->domain, 0);
    for (unsigned i = 0; i < n; i++) {
        placed[i] = (struct rmd_placed){.target = share[i].units, .main_core = -1, .preferred = -1};
        rmd_domain_set_due(share[i].user->domain,
                           due_units(&share[i], rmd_users.units.count - gone));
    }
    placed[n] = (struct rmd_placed){.target = gone, .main_core = -1, .preferred = -1};
    rmd_units_place(&rmd_users.units, owner, NULL, placed, n + (gone > 0));
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        inv_assert(owner[c] <= (int)n);
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        rmd_users.next_user[c] = owner[c] < 0 || owner[c] == (int)n ? NULL : share[owner[c]].user;
}

/* Gives the core to its next user, after the current one has left it. */
static void admit_core(unsigned core)
{
    struct user *u = rmd_users.next_user[core];
    inv_assert(!rmd_users.current_user[core] ||
               rmd_domain_grant(rmd_users.current_user[core]->domain, core) == RMD_NOT_GRANTED);
    rmd_users.current_user[core] = u;
    rmd_users.asked_ns[core] = 0;
    if (u)
        rmd_domain_admit(u->domain, core);
}

static uint64_t bound_ns(void) { return (uint64_t)rmd_users.settings->reclaim_bound_us * 1000; }

static void withdraw_core(unsigned core)
{
    if (rmd_users.current_user[core] == rmd_users.next_user[core]) {
        rmd_users.asked_ns[core] = 0;
        if (rmd_users.current_user[core])
            rmd_domain_admit(rmd_users.current_user[core]->domain, core); /* ends a revocation */
        return;
    }
    if (!rmd_users.current_user[core])
        return;
    bool left = rmd_domain_withdraw(rmd_users.current_user[core]->domain, core);
    if (!rmd_users.asked_ns[core] && !left)
        rmd_users.asked_ns[core] = inv_now_ns();
    if (rmd_users.asked_ns[core] && inv_now_ns() - rmd_users.asked_ns[core] >= bound_ns() &&
        !left) {
        rmd_log(RMD_INFO, "user %u: core %u taken by force",
                (unsigned)rmd_users.current_user[core]->uid, core);
        rmd_domain_expel(rmd_users.current_user[core]->domain, core);
        left = true;
    }
    if (left)
        rmd_users.asked_ns[core] = 0;
}

/* Has the user that has the unit left all of it?  (Each core is looked at: that notes it.) */
static bool unit_is_left(unsigned unit)
{
    bool all = true;
    for (unsigned c = rmd_users.units.first[unit]; c < rmd_users.units.first[unit + 1]; c++)
        all &= !rmd_users.current_user[c] ||
               rmd_domain_has_left(rmd_users.current_user[c]->domain, c);
    return all;
}

/* When the next bound passes. */
static void set_bound_timer(void)
{
    uint64_t first = 0;
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (rmd_users.asked_ns[c] && (!first || rmd_users.asked_ns[c] < first))
            first = rmd_users.asked_ns[c];
    rmd_ring_at(&rmd_users.bound_timer, first ? first + bound_ns() : 0);
}

static void add_share_events(void)
{
    for (struct user *u = rmd_users.first; u; u = u->next) {
        unsigned granted = rmd_domain_granted(u->domain);
        if (rmd_quota_watch_cores(&u->quota))
            continue;
        if (granted != u->reported_cores)
            rmd_event(&rmd_users.shared.events,
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
        rmd_nonmembers_changed(&rmd_users.nonmembers);
}

/* Moves cores to their next users, those that have no holder any more. */
static void move_cores(void)
{
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        withdraw_core(c);
    for (struct user *u = rmd_users.first; u; u = u->next)
        update_confinement(u); /* before others get its cores */
    for (unsigned k = 0; k < rmd_users.units.count; k++) {
        unsigned first = rmd_users.units.first[k];
        if (rmd_users.current_user[first] != rmd_users.next_user[first] && unit_is_left(k))
            for (unsigned c = first; c < rmd_users.units.first[k + 1]; c++)
                admit_core(c);
    }
    for (struct user *u = rmd_users.first; u; u = u->next) {
        update_confinement(u);
        rmd_domain_share(u->domain);
    }
    add_share_events();
    set_bound_timer();
    rmd_users_set_check_timer();
    rmd_users_set_sampling();
}

bool rmd_users_moving(void)
{
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++)
        if (rmd_users.current_user[c] != rmd_users.next_user[c])
            return true;
    return false;
}

void rmd_users_handle_core_left(void *context)
{
    (void)context;
    if (rmd_users_moving())
        move_cores();
}

void rmd_users_bound_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (rmd_timer_rang(source) && rmd_users_moving())
        move_cores();
}

void rmd_users_divide(void)
{
    plan_cores();
    move_cores();
}

/* The quota of a user pays for another number of cores than a moment ago. */
void rmd_users_handle_quota_changed(void)
{
    rmd_users.enforcement.required = true;
    for (struct user *u = rmd_users.first; u; u = u->next)
        rmd_domain_set_paced(u->domain, rmd_quota_watch_cores(&u->quota) > 0);
    rmd_users_divide();
}

/* A unit is in the chip of its first core.  Of each chip the last units are left out, as many as heat
 * forbids: at most all but one, since a part is never 0.  True: others than before. */
static bool find_hot_units(const struct rmd_heat_limit *limit)
{
    const struct rmd_units *units = &rmd_users.units;
    unsigned left_out[RMD_NO_CHIP + 1] = {0}, count[RMD_NO_CHIP + 1] = {0};
    bool changed = false;
    for (unsigned k = 0; k < units->count; k++)
        count[limit->chip[units->first[k]]]++;
    for (unsigned k = units->count; k-- > 0;) {
        unsigned chip = limit->chip[units->first[k]];
        bool hot = left_out[chip] < (unsigned)((1 - limit->used[chip]) * count[chip]);
        left_out[chip] += hot;
        changed |= hot != rmd_users.hot[k];
        rmd_users.hot[k] = hot;
    }
    return changed;
}

/* Speeds are relative to the fastest core.  True: others than before. */
static bool find_speeds(const struct rmd_heat_limit *limit)
{
    struct inv_topology *t = &rmd_users.topology;
    double fastest = 0;
    bool changed = false;
    for (unsigned c = 0; c < t->ncores; c++)
        fastest = fmax(fastest, rmd_users.cool_speed[c] * limit->speed[c]);
    for (unsigned c = 0; c < t->ncores; c++) {
        double part = rmd_users.cool_speed[c] * limit->speed[c] / fastest;
        unsigned short speed = (unsigned short)fmax(1, part * INV_WHOLE_SPEED + 0.5);
        changed |= speed != t->speed[c];
        t->speed[c] = speed;
    }
    return changed;
}

void rmd_users_limit_heat(const struct rmd_heat_limit *limit)
{
    bool slower = find_speeds(limit);
    if (slower)
        rmd_machine_speeds_changed(rmd_users.options.machine);
    for (struct user *u = rmd_users.first; u && slower; u = u->next)
        rmd_domain_set_speeds(u->domain, rmd_users.topology.speed);
    if (!find_hot_units(limit))
        return;
    rmd_users.enforcement.required = true;
    rmd_users_divide();
}

int rmd_user_check_newcomer(struct user *newcomer)
{
    struct rmd_share share[RMD_SHARES_MAX];
    bool gone[INV_MAX_CORES], has_share = false, known = false;
    unsigned n = 0, ids = 0;
    for (struct user *u = rmd_users.first; u; u = u->next) {
        bool same = rmd_user_person(u) == rmd_user_person(newcomer);
        n += rmd_domain_live(u->domain) > 0;
        ids += same && rmd_domain_live(u->domain) > 0;
        known |= same && rmd_user_is_active(u);
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
