/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quota_watch.c - see quota_watch.h. */
#define _GNU_SOURCE
#include "rmd/quota/quota_watch.h"
#include "rmd/host/procstat.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Processor time of the processes since the last look; of a new process all of its time, but no
 * more than it can have used in this period. */
static uint64_t ran_since(struct rmd_quota_watch *w)
{
    uint64_t sum = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_member member;
        if (!rmd_domain_member(w->domain, s, &member)) {
            w->process[s].pid = 0;
            continue;
        }
        uint64_t ran = rmd_process_ran(member.pid), most = w->budget.period_ns;
        uint64_t before = w->process[s].pid == member.pid ? w->process[s].ran_ns
                          : ran > most                    ? ran - most
                                                          : 0;
        sum += inv_ns_since(before, ran);
        w->process[s].pid = member.pid;
        w->process[s].ran_ns = ran;
    }
    return sum;
}

static void report_change(struct rmd_quota_watch *w)
{
    unsigned cores = rmd_quota_watch_cores(w);
    if (cores == w->told_cores)
        return;
    w->told_cores = cores;
    w->changed();
}

static void update_budget(struct rmd_quota_watch *w)
{
    unsigned live = rmd_domain_live(w->domain);
    bool seeks = w->budget.seek_until_ns; /* before the first process comes */
    if (!w->budget.quota_ns || (!live && !seeks) || live >= w->budget.all) {
        if (w->timer.fd >= 0)
            rmd_ring_at(&w->timer, 0);
        report_change(w);
        return;
    }
    struct rmd_budget_seen seen = {.now_ns = inv_now_ns(), .ran_ns = ran_since(w)};
    seen.counted = rmd_quota_periods(&w->quota, &seen.periods, &seen.throttled);
    rmd_ring_at(&w->timer, rmd_budget_update(&w->budget, &seen));
    report_change(w);
}

static void timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (rmd_timer_rang(source))
        update_budget((void *)((char *)source - offsetof(struct rmd_quota_watch, timer)));
}

static bool is_same_nonsense(const struct rmd_quota *a, const struct rmd_quota *b)
{
    return !strcmp(a->nonsense, b->nonsense) && !strcmp(a->text, b->text) && a->error == b->error;
}

static void log_nonsense(const struct rmd_quota *q)
{
    if (q->error)
        rmd_log(RMD_WARNING, "%s cannot be read (%s): it limits nothing", q->nonsense,
                strerror(q->error));
    else
        rmd_log(RMD_WARNING,
                "%s holds no quota (\"%s\"; microseconds above zero are one): it limits nothing",
                q->nonsense, q->text);
}

static void log_quota(const struct rmd_quota_watch *w, const struct rmd_quota *now)
{
    if (*now->nonsense && !is_same_nonsense(now, &w->quota))
        log_nonsense(now);
    if (now->quota_ns)
        rmd_log(RMD_INFO, "user %u: a quota of %.2f cores, by %s",
                (unsigned)rmd_domain_uid(w->domain), rmd_quota_cores(now), now->group);
    else if (w->quota.quota_ns)
        rmd_log(RMD_INFO, "user %u: no quota any more", (unsigned)rmd_domain_uid(w->domain));
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Reads the quota of each process.  True: one quota, *quota, holds for all of them. */
static bool ask_processes(struct rmd_quota_watch *w, struct rmd_quota *quota)
{
    bool any = false, same = true;
    uint64_t group = 0;
    memset(quota, 0, sizeof *quota);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_member member;
        if (!rmd_domain_member(w->domain, s, &member))
            continue;
        rmd_quota_of(quota, w->root, member.pid);
        w->process[s].cores = rmd_quota_cores(quota);
        w->process[s].group = hash_of(quota->group);
        same &= quota->quota_ns && (!any || w->process[s].group == group);
        group = w->process[s].group;
        any = true;
    }
    return any && same;
}

static unsigned count_group(const struct rmd_quota_watch *w, unsigned slot)
{
    struct rmd_member member;
    unsigned n = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        n += rmd_domain_member(w->domain, s, &member) &&
             w->process[s].group == w->process[slot].group;
    return n;
}

static void limit_processes(struct rmd_quota_watch *w, bool each)
{
    struct rmd_member member;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        if (!rmd_domain_member(w->domain, s, &member))
            continue;
        bool has = each && w->process[s].cores > 0;
        unsigned whole = has ? (unsigned)(w->process[s].cores / count_group(w, s)) : 0;
        rmd_domain_set_paid(w->domain, s, has && !whole ? 1 : whole);
    }
}

static void find_quota(struct rmd_quota_watch *w, struct rmd_quota *quota)
{
    if (w->own) {
        rmd_quota_of(quota, w->root, 0);
        return;
    }
    bool of_all = ask_processes(w, quota);
    limit_processes(w, !of_all);
    if (!of_all)
        memset(quota, 0, sizeof *quota);
}

static void use_quota(struct rmd_quota_watch *w, const struct rmd_quota *now)
{
    if (now->quota_ns == w->quota.quota_ns && now->period_ns == w->quota.period_ns &&
        !strcmp(now->group, w->quota.group) && is_same_nonsense(now, &w->quota))
        return;
    log_quota(w, now);
    w->quota = *now;
    bool can = w->timer.fd >= 0 || !now->quota_ns || !rmd_timer_open(&w->timer, timer_expired);
    if (!can)
        rmd_log(RMD_WARNING, "the quota cannot be followed: %s", strerror(errno));
    rmd_budget_set(&w->budget, can ? now->quota_ns : 0, now->period_ns,
                   rmd_domain_topology(w->domain)->ncores, inv_now_ns());
    report_change(w);
}

void rmd_quota_watch_follow(struct rmd_quota_watch *w)
{
    struct rmd_quota now;
    if (!w->root)
        return;
    find_quota(w, &now);
    use_quota(w, &now);
    if (w->budget.quota_ns)
        update_budget(w);
}

void rmd_quota_watch_first(struct rmd_quota_watch *w, pid_t pid)
{
    struct rmd_quota now;
    if (!w->root)
        return;
    rmd_quota_of(&now, w->root, w->own ? 0 : pid);
    use_quota(w, &now);
    if (!w->budget.quota_ns)
        return;
    rmd_budget_expect_all(&w->budget);
    update_budget(w);
}

unsigned rmd_quota_watch_cores(const struct rmd_quota_watch *w)
{
    if (!w->budget.quota_ns)
        return 0;
    unsigned live = rmd_domain_live(w->domain);
    unsigned least = live < w->budget.all ? live : w->budget.all;
    return w->budget.cores > least ? w->budget.cores : least;
}

void rmd_quota_watch_open(struct rmd_quota_watch *w, struct rmd_domain *domain, const char *root,
                          bool own, void (*changed)(void))
{
    w->timer.fd = -1;
    w->domain = domain;
    w->root = root;
    w->own = own;
    w->changed = changed;
}

void rmd_quota_watch_close(struct rmd_quota_watch *w) { rmd_timer_close(&w->timer); }
