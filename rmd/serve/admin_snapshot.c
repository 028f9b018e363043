/* SPDX-License-Identifier: GPL-3.0-or-later */
/* admin_snapshot.c - see admin_snapshot.h. */
#define _GNU_SOURCE
#include "rmd/serve/admin_snapshot.h"
#include "rmd/config/control_protocol.h"
#include "rmd/domain/order.h"
#include "rmd/policy/limit.h"
#include "rmd/users/unmanaged.h"
#include "rmd/users/users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    const struct rmd_domain *requester;
    bool all;
    struct inv_admin_snapshot head;
    FILE *users, *procs, *unmanaged;
};

static void add_process(struct builder *b, uid_t uid, unsigned slot, const struct rmd_member *m)
{
    struct inv_admin_process o = {.uid = uid,
                                  .slot = slot,
                                  .pid = m->pid,
                                  .rank = m->rank,
                                  .least = m->order->least,
                                  .most = m->order->most,
                                  .pinned = m->order->pinned,
                                  .suspended = m->suspended,
                                  .priority = m->priority};
    memcpy(o.cores, m->order->cores, sizeof o.cores);
    b->head.nprocs += fwrite(&o, sizeof o, 1, b->procs) == 1;
}

static void add_unmanaged(struct builder *b)
{
    const struct rmd_unmanaged_list *known = &rmd_users_unmanaged()->known;
    for (unsigned i = 0; i < known->count; i++) {
        const struct rmd_unmanaged_process *p = &known->items[i];
        if (!rmd_unmanaged_counts(p) || !(b->all || p->uid == rmd_domain_uid(b->requester)))
            continue;
        struct inv_admin_unmanaged o = {.uid = p->uid,
                                        .pid = p->pid,
                                        .millicores = (uint32_t)(p->cores * 1000),
                                        .running = p->running};
        memcpy(o.program, p->program, sizeof o.program);
        b->head.nunmanaged += fwrite(&o, sizeof o, 1, b->unmanaged) == 1;
    }
}

static void add_user(struct builder *b, const struct rmd_domain *d, struct rmd_limits limits)
{
    struct inv_admin_user o = {.uid = rmd_domain_uid(d),
                               .nprocs = rmd_domain_live(d),
                               .cores = limits.cores,
                               .job_cores = limits.job_cores};
    rmd_users_quota(o.uid, &o.quota_millicores, &o.quota_cores);
    struct rmd_member member;
    snprintf(o.policy, sizeof o.policy, "%s", rmd_domain_rules(d)->policy->name);
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (rmd_domain_grant(d, c) != RMD_NOT_GRANTED)
            inv_set_add(o.has, c);
    b->head.nusers += fwrite(&o, sizeof o, 1, b->users) == 1;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (rmd_domain_member(d, s, &member) &&
            (member.suspended || member.priority != RMD_PRIORITY || rmd_order_is_set(member.order)))
            add_process(b, o.uid, s, &member);
}

static void add_other_user(struct rmd_domain *d, void *context)
{
    struct builder *b = context;
    if (d == b->requester)
        return;
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (rmd_domain_grant(d, c) != RMD_NOT_GRANTED)
            inv_set_add(b->head.others, c);
    struct rmd_limits limits = rmd_users_limits(rmd_domain_uid(d));
    bool same_policy = rmd_domain_rules(d)->policy == rmd_domain_rules(b->requester)->policy;
    if (b->all && (rmd_domain_live(d) || limits.cores || limits.job_cores || !same_policy))
        add_user(b, d, limits);
}

static void collect_snapshot(struct builder *b)
{
    const struct rmd_domain *d = b->requester;
    b->head.ncores = rmd_users_units()->ncores;
    rmd_users_drained(b->head.drained);
    rmd_users_offline(b->head.offline);
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (rmd_domain_grant(d, c) == RMD_GRANTED && rmd_domain_rests(d, c))
            inv_set_add(b->head.resting, c);
    add_user(b, d, rmd_users_limits(rmd_domain_uid(d)));
    rmd_users_each(add_other_user, b);
    add_unmanaged(b);
}

/* The part's text is the caller's to free. */
struct part {
    char *text;
    size_t bytes;
};

char *rmd_admin_snapshot(const struct rmd_domain *domain, bool all, size_t *bytes)
{
    struct builder b = {.requester = domain, .all = all};
    enum { PARTS = 3 };
    struct part part[PARTS] = {{NULL, 0}};
    FILE **file[PARTS] = {&b.users, &b.procs, &b.unmanaged};
    bool good = true;
    for (unsigned i = 0; i < PARTS; i++)
        good &= (*file[i] = open_memstream(&part[i].text, &part[i].bytes)) != NULL;
    if (good)
        collect_snapshot(&b);
    *bytes = sizeof b.head;
    for (unsigned i = 0; i < PARTS; i++) {
        good &= !(*file[i] && fclose(*file[i]));
        *bytes += part[i].bytes;
    }
    char *whole = good ? malloc(*bytes) : NULL, *to = whole;
    if (whole)
        to = mempcpy(to, &b.head, sizeof b.head);
    for (unsigned i = 0; i < PARTS; i++) {
        if (whole)
            to = mempcpy(to, part[i].text, part[i].bytes);
        free(part[i].text);
    }
    return whole;
}
