/* SPDX-License-Identifier: GPL-3.0-or-later */
/* admin_snapshot.c - see admin_snapshot.h. */
#define _GNU_SOURCE
#include "rmd/serve/admin_snapshot.h"
#include "rmd/config/control_protocol.h"
#include "rmd/users/users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    const struct rmd_domain *asker;
    bool all;
    struct inv_admin_snapshot head;
    FILE *users, *procs;
};

static bool has_order(const struct rmd_process *p)
{
    return p->used && (p->order.least || p->order.most || p->order.pinned);
}

static void add_process(struct builder *b, const struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    struct inv_admin_process o = {.uid = d->uid,
                                  .slot = slot,
                                  .pid = p->pid,
                                  .rank = p->rank,
                                  .least = p->order.least,
                                  .most = p->order.most,
                                  .pinned = p->order.pinned};
    memcpy(o.cores, p->order.cores, sizeof o.cores);
    b->head.nprocs += fwrite(&o, sizeof o, 1, b->procs) == 1;
}

static void add_user(struct builder *b, const struct rmd_domain *d, struct rmd_limits limits)
{
    struct inv_admin_user o = {
        .uid = d->uid, .nprocs = d->live, .cores = limits.cores, .job_cores = limits.job_cores};
    snprintf(o.policy, sizeof o.policy, "%s", d->policy->name);
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (d->grant[c] != RMD_NOT_GRANTED)
            inv_set_add(o.has, c);
    b->head.nusers += fwrite(&o, sizeof o, 1, b->users) == 1;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (has_order(&d->procs[s]))
            add_process(b, d, s);
}

static void add_other_user(struct rmd_domain *d, void *context)
{
    struct builder *b = context;
    if (d == b->asker)
        return;
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (d->grant[c] != RMD_NOT_GRANTED)
            inv_set_add(b->head.others, c);
    struct rmd_limits limits = rmd_users_limits(d->uid);
    if (b->all && (d->live || limits.cores || limits.job_cores || d->policy != b->asker->policy))
        add_user(b, d, limits);
}

static void collect(struct builder *b)
{
    const struct rmd_domain *d = b->asker;
    b->head.ncores = rmd_users_units()->ncores;
    rmd_users_drained(b->head.drained);
    rmd_users_offline(b->head.offline);
    for (unsigned c = 0; c < b->head.ncores; c++)
        if (d->grant[c] == RMD_GRANTED && d->resting[c])
            inv_set_add(b->head.resting, c);
    add_user(b, d, rmd_users_limits(d->uid));
    rmd_users_each(add_other_user, b);
}

char *rmd_admin_snapshot(const struct rmd_domain *domain, bool all, size_t *bytes)
{
    struct builder b = {.asker = domain, .all = all};
    char *users = NULL, *procs = NULL, *whole = NULL;
    size_t user_bytes = 0, proc_bytes = 0;
    b.users = open_memstream(&users, &user_bytes);
    b.procs = open_memstream(&procs, &proc_bytes);
    bool good = b.users && b.procs;
    if (good)
        collect(&b);
    good &= !(b.users && fclose(b.users)) & !(b.procs && fclose(b.procs));
    *bytes = sizeof b.head + user_bytes + proc_bytes;
    if (good && (whole = malloc(*bytes)) != NULL) {
        memcpy(whole, &b.head, sizeof b.head);
        memcpy(whole + sizeof b.head, users, user_bytes);
        memcpy(whole + sizeof b.head + user_bytes, procs, proc_bytes);
    }
    free(users);
    free(procs);
    return whole;
}
