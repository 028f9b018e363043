/* SPDX-License-Identifier: GPL-3.0-or-later */
/* overview.c - see overview.h. */
#define _GNU_SOURCE
#include "overview.h"
#include "control_protocol.h"
#include "users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view {
    const struct rmd_domain *asker;
    bool all;
    struct inv_overview head;
    FILE *users, *procs;
};

static bool ordered(const struct rmd_process *p)
{
    return p->used && (p->order.least || p->order.most || p->order.pinned);
}

static void add_process(struct view *v, const struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    struct inv_overview_process o = {.uid = d->uid,
                                     .slot = slot,
                                     .pid = p->pid,
                                     .rank = p->rank,
                                     .least = p->order.least,
                                     .most = p->order.most,
                                     .pinned = p->order.pinned};
    memcpy(o.cores, p->order.cores, sizeof o.cores);
    v->head.nprocs += fwrite(&o, sizeof o, 1, v->procs) == 1;
}

static void add_user(struct view *v, const struct rmd_domain *d, struct rmd_limits limits)
{
    struct inv_overview_user o = {.uid = d->uid,
                                  .nprocs = d->live,
                                  .cores = limits.cores,
                                  .job_cores = limits.job_cores};
    snprintf(o.policy, sizeof o.policy, "%s", d->policy->name);
    for (unsigned c = 0; c < v->head.ncores; c++)
        if (d->presence[c] != RMD_AWAY)
            inv_set_add(o.has, c);
    v->head.nusers += fwrite(&o, sizeof o, 1, v->users) == 1;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (ordered(&d->procs[s]))
            add_process(v, d, s);
}

static void visit(struct rmd_domain *d, void *context)
{
    struct view *v = context;
    if (d == v->asker)
        return;
    for (unsigned c = 0; c < v->head.ncores; c++)
        if (d->presence[c] != RMD_AWAY)
            inv_set_add(v->head.others, c);
    struct rmd_limits limits = rmd_users_limits(d->uid);
    if (v->all && (d->live || limits.cores || limits.job_cores || d->policy != v->asker->policy))
        add_user(v, d, limits);
}

static void collect(struct view *v)
{
    const struct rmd_domain *d = v->asker;
    v->head.ncores = rmd_users_units()->ncores;
    rmd_users_drained(v->head.drained);
    rmd_users_offline(v->head.offline);
    for (unsigned c = 0; c < v->head.ncores; c++)
        if (d->presence[c] == RMD_HERE && d->resting[c])
            inv_set_add(v->head.resting, c);
    add_user(v, d, rmd_users_limits(d->uid));
    rmd_users_each(visit, v);
}

char *rmd_overview(const struct rmd_domain *domain, bool all, size_t *bytes)
{
    struct view v = {.asker = domain, .all = all};
    char *users = NULL, *procs = NULL, *whole = NULL;
    size_t user_bytes = 0, proc_bytes = 0;
    v.users = open_memstream(&users, &user_bytes);
    v.procs = open_memstream(&procs, &proc_bytes);
    bool good = v.users && v.procs;
    if (good)
        collect(&v);
    good &= !(v.users && fclose(v.users)) & !(v.procs && fclose(v.procs));
    *bytes = sizeof v.head + user_bytes + proc_bytes;
    if (good && (whole = malloc(*bytes)) != NULL) {
        memcpy(whole, &v.head, sizeof v.head);
        memcpy(whole + sizeof v.head, users, user_bytes);
        memcpy(whole + sizeof v.head + user_bytes, procs, proc_bytes);
    }
    free(users);
    free(procs);
    return whole;
}
