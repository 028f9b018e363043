/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * control.c - commands become orders (order.h), suspended jobs, limits or drained cores (users.h).  The policies
 * decide anew at once.  Cores then move when their holders give them up.  Within a domain rmd gets
 * no event of that, so it polls while a client waits: after some microseconds first, and then after
 * a quarter of the time that has passed.  Polls are charged to the user that waits (rate_limit.h).
 */
#define _GNU_SOURCE
#include "rmd/serve/control.h"
#include "rmd/config/core_list.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/domain/order.h"
#include "rmd/policy/limit.h"
#include "libinvasive/base/now.h"
#include "rmd/host/rate_limit.h"
#include "rmd/host/subuid.h"
#include "rmd/loop/text.h"
#include "rmd/users/machine.h"
#include "rmd/users/users.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PENDING_MAX = 16,    /* of a user; an operator's are always taken */
    POLL_MIN_NS = 20000, /* between two polls of a pending command */
    POLL_MAX_NS = 5000000,
};
#define FORCE_MAX_NS UINT64_C(10000000000) /* a command without a client is forgotten then */

struct rmd_pending {
    struct rmd_pending *next;
    struct rmd_control *of;
    struct inv_control command;
    struct inv_outcome outcome;
    struct rmd_requester requester; /* client NULL: gone, or answered */
    uint64_t begin_ns;
    bool asks; /* only; nothing has changed */
};

static bool __attribute__((format(printf, 2, 3)))
set_refusal(struct inv_outcome *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(o->text, sizeof o->text, format, args);
    va_end(args);
    o->status = INV_REFUSED;
    return false;
}

static void add_event(const struct rmd_pending *p, enum inv_event_kind kind, unsigned after,
                      const char *text)
{
    rmd_event(&rmd_users_shared()->events,
              (struct inv_event){.kind = kind,
                                 .uid = p->outcome.uid,
                                 .pid = p->outcome.pid,
                                 .rank = -1,
                                 .after = after},
              text);
}

/* --- sets of cores */

/* Cores that there are, and all of each unit. */
static bool is_valid_set(const uint64_t *set, struct inv_outcome *o)
{
    const struct rmd_units *units = rmd_users_units();
    unsigned count = 0;
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        if (!inv_set_has(set, c))
            continue;
        count++;
        if (c >= units->ncores)
            return set_refusal(o,
                               "there is no core %u: they are 0 to %u, the first column of rmctl "
                               "status",
                               c, units->ncores - 1);
        unsigned unit = units->of[c];
        for (unsigned k = units->first[unit]; k < units->first[unit + 1]; k++)
            if (!inv_set_has(set, k))
                return set_refusal(o,
                                   "core %u is of one physical core with %u, and this rmd gives "
                                   "these together: name core %u, too",
                                   k, c, k);
    }
    return count || set_refusal(o, "no core is named: use a list such as 0-3,8");
}

static unsigned count_units(const uint64_t *set)
{
    const struct rmd_units *units = rmd_users_units();
    unsigned n = 0;
    for (unsigned k = 0; k < units->count; k++)
        n += inv_set_has(set, units->first[k]);
    return n;
}

/* --- one process */

static struct rmd_domain *domain_of_process(const struct rmd_pending *p, unsigned *slot)
{
    return rmd_users_find(p->command.pid, p->requester.uid, p->requester.operator, slot);
}

static pid_t pid_of(const struct rmd_domain *d, int slot)
{
    struct rmd_member member = {0};
    return rmd_domain_member(d, (unsigned)slot, &member) ? member.pid : 0;
}

static bool can_pin(struct rmd_domain *d, unsigned slot, const uint64_t *set, struct inv_outcome *o)
{
    unsigned others = 0, taken = 0, ncores = rmd_domain_topology(d)->ncores;
    struct rmd_member member;
    for (unsigned c = 0; c < ncores; c++) {
        int whose = inv_set_has(set, c) ? rmd_pinned_to(d, c) : -1;
        if (whose >= 0 && whose != (int)slot)
            return set_refusal(
                o, "core %u is process %d's, which is pinned to it: rmctl pin %d --reset", c,
                (int)pid_of(d, whose), (int)pid_of(d, whose));
        if (inv_set_has(set, c) && rmd_domain_grant(d, c) != RMD_GRANTED)
            return set_refusal(o,
                               "core %u is drained, or another user's now: rmctl status says "
                               "which",
                               c);
    }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        others += rmd_domain_member(d, s, &member) && s != slot && !rmd_is_pinned(d, s);
    for (unsigned c = 0; c < ncores; c++) {
        int whose = rmd_pinned_to(d, c);
        taken += whose >= 0 && whose != (int)slot && rmd_units_first(rmd_users_units(), c);
    }
    if (taken + count_units(set) + others > rmd_domain_counts(d).units_granted)
        return set_refusal(
            o,
            "%u other process%s of user %u would be left without a core: pin process "
            "%d to fewer",
            others, rmd_plural(others, "es"), (unsigned)rmd_domain_uid(d),
            (int)pid_of(d, (int)slot));
    return true;
}

static bool can_change_process(struct rmd_pending *p, struct rmd_domain *d, unsigned slot,
                               const struct rmd_order *order)
{
    const struct inv_control *c = &p->command;
    struct inv_outcome *o = &p->outcome;
    unsigned ncores = rmd_domain_topology(d)->ncores;
    if (rmd_domain_table(d)->mode != INV_MODE_PINNED)
        return set_refusal(
            o,
            "process %d owns no cores: there are more processes than cores, which are "
            "only counted; start fewer, or use rmctl limit",
            (int)c->pid);
    if (c->reset)
        return true;
    if (c->verb == INV_PIN)
        return is_valid_set(c->set, o) && can_pin(d, slot, c->set, o);
    if (order->pinned)
        return set_refusal(o, "process %d is pinned: rmctl pin %d --reset takes that back",
                           (int)c->pid, (int)c->pid);
    if (c->cores < 1 || c->cores > ncores)
        return set_refusal(o, "%u cores are not possible for process %d: use 1 to %u", c->cores,
                           (int)c->pid, ncores);
    unsigned most = rmd_domain_most(d, slot);
    if (c->verb == INV_EXPAND && c->cores > most)
        return set_refusal(
            o,
            "process %d can be sure of %u core%s at most: of the %u that user %u has, "
            "others need the rest",
            (int)c->pid, most, rmd_plural(most, "s"), rmd_domain_granted(d),
            (unsigned)rmd_domain_uid(d));
    return true;
}

static unsigned owned_cores(const struct rmd_domain *d, unsigned slot)
{
    struct rmd_member member = {0};
    return rmd_domain_member(d, slot, &member) ? member.owned : 0;
}

static void change_order(struct rmd_order *order, const struct inv_control *c)
{
    if (c->verb == INV_PIN) {
        order->pinned = !c->reset;
        memcpy(order->cores, c->set, sizeof order->cores);
        return;
    }
    unsigned cores = c->reset ? 0 : c->cores;
    if (c->verb == INV_SHRINK)
        order->most = cores;
    else
        order->least = cores;
    if (order->least && order->most && order->least > order->most) /* the last word counts */
        *(c->verb == INV_SHRINK ? &order->least : &order->most) = 0;
}

static bool refuse_unknown(struct rmd_pending *p)
{
    return set_refusal(&p->outcome, "process %d is not managed here%s: see rmctl status",
                       (int)p->command.pid, p->requester.operator? "" : ", or not yours");
}

static bool execute_for_process(struct rmd_pending *p)
{
    struct inv_outcome *o = &p->outcome;
    const struct inv_control *c = &p->command;
    unsigned slot;
    struct rmd_domain *d = domain_of_process(p, &slot);
    if (!d)
        return refuse_unknown(p);
    o->uid = rmd_domain_uid(d);
    o->pid = c->pid;
    struct rmd_member member = {0};
    rmd_domain_member(d, slot, &member);
    struct rmd_order before = *member.order, order = before;
    if (!can_change_process(p, d, slot, &before))
        return false;
    change_order(&order, c);
    rmd_domain_set_order(d, slot, &order);
    unsigned owned = owned_cores(d, slot);
    if (c->verb == INV_EXPAND && !c->reset && owned < c->cores) {
        rmd_domain_set_order(d, slot, &before);
        return set_refusal(o,
                           "process %d would own %u cores, not %u: a limit for launches, or what "
                           "others need (rmctl limit, rmctl status)",
                           (int)c->pid, owned, c->cores);
    }
    char text[sizeof((struct inv_event *)0)->text];
    if (c->verb == INV_PIN && !c->reset)
        rmd_list_cores(c->set, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", c->reset ? "reset" : "");
    add_event(p, INV_EVENT_SHRINK + (c->verb - INV_SHRINK), c->cores, text);
    return true;
}

static void describe_process(struct rmd_pending *p, const struct rmd_domain *d, unsigned slot)
{
    uint64_t set[INV_CORE_WORDS] = {0};
    char list[128];
    for (unsigned c = 0; c < rmd_domain_topology(d)->ncores; c++)
        if (rmd_domain_owner(d, c) == (int)slot)
            inv_set_add(set, c);
    rmd_list_cores(set, list, sizeof list);
    p->outcome.owned = owned_cores(d, slot);
    snprintf(p->outcome.text, sizeof p->outcome.text, "process %d owns %u core%s: %s",
             (int)p->command.pid, p->outcome.owned, rmd_plural(p->outcome.owned, "s"), list);
}

/* --- one job */

static bool execute_for_job(struct rmd_pending *p)
{
    const struct inv_control *c = &p->command;
    bool suspend = c->verb == INV_SUSPEND;
    unsigned slot;
    struct rmd_domain *d = domain_of_process(p, &slot);
    if (!d)
        return refuse_unknown(p);
    p->outcome.uid = rmd_domain_uid(d);
    p->outcome.pid = c->pid;
    struct rmd_member member = {0};
    rmd_domain_member(d, slot, &member);
    if (member.suspended == suspend)
        return set_refusal(&p->outcome, "the job of process %d is %s", (int)c->pid,
                           suspend ? "suspended already" : "not suspended");
    p->outcome.processes = rmd_users_suspend(d, slot, suspend);
    add_event(p, suspend ? INV_EVENT_SUSPEND : INV_EVENT_RESUME, p->outcome.processes, "");
    return true;
}

static bool execute_priority(struct rmd_pending *p)
{
    unsigned slot, priority = p->command.cores;
    struct rmd_domain *d = domain_of_process(p, &slot);
    if (!d)
        return refuse_unknown(p);
    p->outcome.uid = rmd_domain_uid(d);
    p->outcome.pid = p->command.pid;
    if (priority > RMD_PRIORITY_MOST)
        return set_refusal(&p->outcome, "%u is no priority: use 0 to %d", priority, RMD_PRIORITY_MOST);
    if (priority > RMD_PRIORITY && !p->requester.operator)
        return set_refusal(&p->outcome, "only root and the user that runs rmd may give a job more than %d",
                           RMD_PRIORITY);
    p->outcome.processes = rmd_domain_prioritize(d, slot, priority);
    add_event(p, INV_EVENT_PRIORITY, priority, "");
    return true;
}

static bool is_job_settled(struct rmd_pending *p, struct rmd_domain *d, unsigned slot)
{
    unsigned computing = 0;
    bool suspend = p->command.verb == INV_SUSPEND;
    bool settled = !suspend || rmd_domain_suspension_settled(d, slot, &computing);
    int n = snprintf(p->outcome.text, sizeof p->outcome.text, "the job of process %d %s: %u process%s",
                     (int)p->command.pid, suspend ? "is suspended" : "goes on", p->outcome.processes,
                     rmd_plural(p->outcome.processes, "es"));
    if (computing)
        snprintf(p->outcome.text + n, sizeof p->outcome.text - (size_t)n,
                 ", of which %u still compute%s, without a core", computing,
                 computing == 1 ? "s" : "");
    return settled;
}

/* --- users and the machine */

/* The limits after this command: those that it does not name stay as the operator, or the user, has
 * set them before. */
static struct rmd_limits new_limits(const struct rmd_pending *p, uid_t uid)
{
    const struct inv_control *c = &p->command;
    struct rmd_limits l = {0};
    if (!c->reset)
        l = rmd_users_ordered(uid, p->requester.operator);
    if (c->cores != INV_UNSAID)
        l.cores = c->cores && c->cores < INV_MAX_CORES ? c->cores : INV_MAX_CORES;
    if (c->job_cores != INV_UNSAID)
        l.job_cores = c->job_cores && c->job_cores < INV_MAX_CORES ? c->job_cores : INV_MAX_CORES;
    return l;
}

static void describe_limits(struct inv_outcome *o)
{
    char cores[16] = "all", job[16] = "all";
    struct rmd_limits l = rmd_users_limits(o->uid);
    o->cores = l.cores;
    o->job_cores = l.job_cores;
    if (l.cores)
        snprintf(cores, sizeof cores, "%u", l.cores);
    if (l.job_cores)
        snprintf(job, sizeof job, "%u", l.job_cores);
    snprintf(o->text, sizeof o->text, "user %u: cores %s, cores of a launch %s", (unsigned)o->uid,
             cores, job);
}

static bool execute_limit(struct rmd_pending *p)
{
    const struct inv_control *c = &p->command;
    struct inv_outcome *o = &p->outcome;
    uid_t uid = c->uid == INV_UNSAID ? p->requester.uid : c->uid;
    if (uid != p->requester.uid && !p->requester.operator)
        return set_refusal(
            o, "only root and the user that runs rmd may look at and set limits of user %u",
            (unsigned)uid);
    if (!rmd_users_served(uid))
        return set_refusal(o, "user %u has no processes here: this rmd serves user %u only",
                           (unsigned)uid, (unsigned)getuid());
    p->asks = !c->reset && c->cores == INV_UNSAID && c->job_cores == INV_UNSAID;
    struct rmd_limits l = new_limits(p, uid);
    if (!p->asks && !rmd_users_order(uid, p->requester.operator, &l))
        return set_refusal(o, "rmd has no memory");
    o->uid = uid;
    describe_limits(o);
    if (!p->asks)
        add_event(p, INV_EVENT_LIMIT, o->cores, o->text);
    return true;
}

static bool execute_drain(struct rmd_pending *p)
{
    const struct inv_control *c = &p->command;
    struct inv_outcome *o = &p->outcome;
    uint64_t after[INV_CORE_WORDS];
    o->uid = INV_UNSAID;
    if (!p->requester.operator)
        return set_refusal(o, "only root and the user that runs rmd may drain cores");
    if (!is_valid_set(c->set, o))
        return false;
    rmd_users_drained(after);
    for (unsigned i = 0; i < INV_CORE_WORDS; i++)
        after[i] = c->reset ? after[i] & ~c->set[i] : after[i] | c->set[i];
    unsigned left = rmd_users_left(after), needed = rmd_users_needed();
    if (left < needed && !c->reset)
        return set_refusal(
            o, "%u would be left of %u, and %u user%s at least one each: drain fewer", left,
            rmd_users_units()->count, needed, needed == 1 ? " needs" : "s need");
    rmd_users_drain(c->set, c->reset);
    char list[sizeof((struct inv_event *)0)->text];
    o->owned = rmd_users_drained(after);
    rmd_list_cores(after, list, sizeof list);
    snprintf(o->text, sizeof o->text, "%u core%s drained%s%s", o->owned,
             rmd_plural(o->owned, "s"), *list ? ": " : "", list);
    rmd_log(RMD_NOTICE, "%s", o->text);
    add_event(p, INV_EVENT_DRAIN, o->owned, list);
    return true;
}

static void describe_chips(struct inv_outcome *o, const struct rmd_heat *h)
{
    for (unsigned i = 0; i < h->chips.count && h->chips.known && i < INV_CHIPS; i++) {
        const struct rmd_heat_seen *seen = rmd_heat_of_chip(h, i);
        o->chip[o->nchips++] = (struct inv_chip){
            .package = h->chips.package[i],
            .speed_percent = (uint16_t)(100 * h->part[i] + 0.5),
            .temperature = seen->read ? (int16_t)seen->hottest : INV_NO_TEMPERATURE};
    }
}

static void describe_power(struct inv_outcome *o, const struct rmd_heat *h)
{
    const struct rmd_heat_seen *s = &h->sensors.all;
    o->cores = h->threshold;
    o->sensors = s->read;
    o->job_cores = (uint32_t)s->hottest;
    o->owned = (uint32_t)(100 * rmd_heat_least(h) + 0.5);
    char warm[64] = "no sensor tells how warm the CPUs are", limit[96] = "no limit";
    char missing[64] = "";
    if (s->read)
        snprintf(warm, sizeof warm, "%.1f degrees in the hottest CPU", s->hottest);
    if (h->threshold)
        snprintf(limit, sizeof limit, "below %u degrees, by %u %% of the %s%s", h->threshold, o->owned,
                 h->by_cores ? "cores" : "highest frequency",
                 h->chips.count > 1 ? " in the slowest chip" : "");
    if (h->threshold && !s->read)
        snprintf(missing, sizeof missing, ", which stays until a sensor is back");
    else if (h->threshold && s->missing)
        snprintf(missing, sizeof missing, ", and no faster: %u sensor%s missing", s->missing,
                 s->missing == 1 ? " is" : "s are");
    snprintf(o->text, sizeof o->text, "%s; %s%s", warm, limit, missing);
    describe_chips(o, h);
}

static bool execute_power(struct rmd_pending *p)
{
    struct rmd_machine_state *m = rmd_users_machine();
    struct inv_outcome *o = &p->outcome;
    unsigned degrees = p->command.cores;
    p->asks = true; /* it has its effect over time */
    o->uid = INV_UNSAID;
    if (degrees == INV_UNSAID)
        degrees = m->heat.threshold;
    else if (!p->requester.operator)
        return set_refusal(o, "only root and the user that runs rmd may limit temperatures");
    else if (degrees && (degrees < RMD_THERMAL_LEAST || degrees > RMD_THERMAL_MOST))
        return set_refusal(o, "%u degrees are no threshold: use %d to %d", degrees, RMD_THERMAL_LEAST, RMD_THERMAL_MOST);
    else if (!rmd_users_cool(degrees))
        return set_refusal(o, "no sensor tells the temperature of the CPUs (hwmon, thermal zones)");
    else
        rmd_log(RMD_NOTICE, degrees ? "the CPUs are to stay below %u degrees" : "no limit of temperature any more", degrees);
    if (!degrees)
        rmd_heat_keep_below(&m->heat, 0); /* looks at the sensors */
    describe_power(o, &m->heat);
    return true;
}

/* --- waiting for the effect */

static void send_answer(struct rmd_pending *p, enum inv_outcome_status status)
{
    void *client = p->requester.client;
    p->requester.client = NULL;
    p->outcome.status = status;
    if (client)
        p->requester.answer(client, &p->outcome);
}

static void remove_pending(struct rmd_pending *p)
{
    struct rmd_pending **link = &p->of->pending;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    free(p);
}

/* Has the command had its effect?  After the reclaim bound cores are taken by force. */
static bool is_effective(struct rmd_pending *p, uint64_t now)
{
    if (p->command.verb == INV_LIMIT || p->command.verb == INV_DRAIN)
        return !rmd_users_moving();
    unsigned slot;
    struct rmd_domain *d = domain_of_process(p, &slot);
    if (!d) {
        snprintf(p->outcome.text, sizeof p->outcome.text, "process %d has ended",
                 (int)p->command.pid);
        return true;
    }
    if (p->command.verb == INV_SUSPEND || p->command.verb == INV_RESUME)
        return is_job_settled(p, d, slot);
    if (now - p->begin_ns >= (uint64_t)rmd_domain_rules(d)->reclaim_bound_us * 1000)
        rmd_order_force(d);
    describe_process(p, d, slot);
    return rmd_order_settled(d, slot);
}

static uint64_t deadline_ns(const struct rmd_pending *p)
{
    return p->begin_ns + (uint64_t)p->command.wait_ms * 1000000;
}

/* The command has had no effect so far.  True: its time has passed and it is forgotten. */
static bool check_deadline(struct rmd_pending *p, uint64_t now)
{
    p->outcome.took_ns = now - p->begin_ns;
    if (p->requester.client && now >= deadline_ns(p))
        send_answer(p, INV_NOT_YET);
    return !p->requester.client && p->outcome.took_ns >= FORCE_MAX_NS;
}

/* True: the command is not pending any more. */
static bool check_effect(struct rmd_pending *p)
{
    uint64_t now = inv_now_ns();
    if (is_effective(p, now)) {
        now = inv_now_ns();
        p->outcome.took_ns = now - p->begin_ns;
        add_event(p, INV_EVENT_EFFECT, (unsigned)(p->outcome.took_ns / 1000), p->outcome.text);
        send_answer(p, INV_DONE);
        return true;
    }
    return check_deadline(p, now);
}

/* The time from which on the rate limit of the command's user allows another poll. */
static uint64_t rate_limit_due_ns(const struct rmd_pending *p)
{
    return p->requester.operator
               ? 0
               : rmd_rate_limit_due_ns(&rmd_users_shared()->rates, p->requester.uid);
}

static uint64_t next_poll_ns(const struct rmd_pending *p, uint64_t now)
{
    uint64_t wait = (now - p->begin_ns) / 4, due = rate_limit_due_ns(p), until = deadline_ns(p);
    wait = wait < POLL_MIN_NS ? POLL_MIN_NS : wait > POLL_MAX_NS ? POLL_MAX_NS : wait;
    uint64_t at = now + wait < due ? due : now + wait;
    return p->requester.client && until < at ? until : at;
}

static void set_poll_timer(const struct rmd_control *k)
{
    uint64_t now = inv_now_ns(), at = 0;
    for (struct rmd_pending *p = k->pending; p; p = p->next) {
        uint64_t next = next_poll_ns(p, now);
        if (!at || next < at)
            at = next;
    }
    rmd_ring_at(&k->poll_timer, at);
}

/* The same, if the user's rate limit allows it; charges the user for it. */
static bool poll_pending(struct rmd_pending *p)
{
    uint64_t now = inv_now_ns();
    if (rate_limit_due_ns(p) > now)
        return check_deadline(p, now);
    uint64_t begun = rmd_rate_limit_clock();
    bool ended = check_effect(p);
    if (!p->requester.operator)
        rmd_rate_limit_charge(&rmd_users_shared()->rates, p->requester.uid,
                              rmd_rate_limit_clock() - begun);
    return ended;
}

static void poll_timer_expired(struct rmd_source *source, uint32_t events)
{
    struct rmd_control *k = (void *)((char *)source - offsetof(struct rmd_control, poll_timer));
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    for (struct rmd_pending *p = k->pending, *next; p; p = next) {
        next = p->next;
        if (poll_pending(p))
            remove_pending(p);
    }
    set_poll_timer(k);
}

static bool open_poll_timer(struct rmd_control *k)
{
    return (k->poll_timer.ready && k->poll_timer.fd >= 0) ||
           !rmd_timer_open(&k->poll_timer, poll_timer_expired);
}

static unsigned count_pending(const struct rmd_control *k, uid_t uid)
{
    struct rmd_persons *persons = &rmd_users_shared()->persons;
    unsigned n = 0;
    for (struct rmd_pending *p = k->pending; p; p = p->next)
        n += rmd_person(persons, p->requester.uid) == rmd_person(persons, uid);
    return n;
}

static bool execute_command(struct rmd_pending *p)
{
    if (!p->requester.operator && count_pending(p->of, p->requester.uid) >= PENDING_MAX)
        return set_refusal(&p->outcome, "%d commands of user %u wait for their effect: try again",
                           PENDING_MAX, (unsigned)p->requester.uid);
    switch (p->command.verb) {
    case INV_SHRINK:
    case INV_EXPAND:
    case INV_PIN:
        return execute_for_process(p);
    case INV_SUSPEND:
    case INV_RESUME:
        return execute_for_job(p);
    case INV_PRIORITY:
        return execute_priority(p);
    case INV_LIMIT:
        return execute_limit(p);
    case INV_DRAIN:
        return execute_drain(p);
    case INV_POWER:
        return execute_power(p);
    default:
        return set_refusal(&p->outcome, "command %u is unknown: mixed installations?",
                           p->command.verb);
    }
}

void rmd_control(struct rmd_control *k, const struct inv_control *command,
                 const struct rmd_requester *requester)
{
    struct rmd_pending *p = open_poll_timer(k) ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        struct inv_outcome none = {.status = INV_REFUSED, .text = "rmd has no memory"};
        requester->answer(requester->client, &none);
        return;
    }
    p->of = k;
    p->command = *command;
    p->requester = *requester;
    p->begin_ns = inv_now_ns();
    p->outcome.uid = requester->uid;
    if (p->command.wait_ms > INV_WAIT_MAX_MS)
        p->command.wait_ms = INV_WAIT_MAX_MS;
    bool obeys = execute_command(p);
    if (!obeys || p->asks) {
        if (!obeys)
            rmd_debug("refused user %u: %s", (unsigned)requester->uid, p->outcome.text);
        send_answer(p, obeys ? INV_DONE : INV_REFUSED);
        free(p);
        return;
    }
    k->executed++;
    p->next = k->pending;
    k->pending = p;
    if (check_effect(p))
        remove_pending(p);
    set_poll_timer(k);
}

void rmd_control_forget(struct rmd_control *k, const void *client)
{
    for (struct rmd_pending *p = k->pending; p; p = p->next)
        if (p->requester.client == client)
            p->requester.client = NULL;
}
