/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_admin_snapshot.c - see rmctl_admin_snapshot.h. */
#define _GNU_SOURCE
#include "tools/rmctl/rmctl_admin_snapshot.h"
#include "rmd/config/core_list.h"
#include "rmd/loop/text.h"
#include "rmd/policy/limit.h"

#include <stdio.h>

static const char *name_of_reason(const struct inv_admin_snapshot *o, unsigned core)
{
    return inv_set_has(o->resting, core)   ? "resting"
           : inv_set_has(o->offline, core) ? "offline"
           : inv_set_has(o->drained, core) ? "drained"
           : inv_set_has(o->others, core)  ? "other-user"
           : rmd_admin_users(o)->quota_cores ? "quota"
                                             : "unused";
}

const char *admin_why_away(const struct inv_admin_snapshot *o, const struct view *v, unsigned core)
{
    if (!o)
        return NULL;
    int owner = v->core[core].owner; /* VIEW_NOBODY for all cores of a user without processes */
    bool elsewhere = owner == VIEW_NOBODY && !inv_set_has(rmd_admin_users(o)[0].has, core);
    return owner == VIEW_AWAY || elsewhere ? name_of_reason(o, core) : NULL;
}

static bool has_any_core(const uint64_t *set)
{
    for (unsigned i = 0; i < INV_CORE_WORDS; i++)
        if (set[i])
            return true;
    return false;
}

/* --- for people */

static void print_set(FILE *to, const char *before, const uint64_t *set)
{
    char list[4096];
    rmd_list_cores(set, list, sizeof list);
    fprintf(to, "%s%s", before, *list ? list : "none");
}

static void print_limit(FILE *to, const char *before, unsigned cores)
{
    if (cores)
        fprintf(to, "%s%u", before, cores);
    else
        fprintf(to, "%sall", before);
}

static void print_user(FILE *to, const struct inv_admin_user *u)
{
    fprintf(to, "policy %s", u->policy);
    print_limit(to, ", limits: cores ", u->cores);
    print_limit(to, ", cores of a launch ", u->job_cores);
    if (u->quota_millicores)
        fprintf(to, ", quota %.2f cores", u->quota_millicores / 1000.0);
    if (u->quota_cores)
        fprintf(to, " (%u now)", u->quota_cores);
}

void admin_print_head(FILE *to, const struct inv_admin_snapshot *o)
{
    print_user(to, &rmd_admin_users(o)[0]);
    if (has_any_core(o->drained))
        print_set(to, "; drained: ", o->drained);
    if (has_any_core(o->offline))
        print_set(to, "; offline: ", o->offline);
    fprintf(to, "\n");
}

static void print_process(FILE *to, const struct inv_admin_process *p, bool own)
{
    fprintf(to, "order: process %d", p->pid);
    if (p->rank >= 0)
        fprintf(to, " rank %d", p->rank);
    if (!own)
        fprintf(to, " of user %u", p->uid);
    const char *before = " owns ";
    if (p->suspended) {
        fprintf(to, " is suspended with its job");
        before = "; else owns ";
    }
    if (p->pinned) {
        print_set(to, p->suspended ? "; else is pinned to " : " is pinned to ", p->cores);
        before = "; else owns ";
    }
    if (p->priority != RMD_PRIORITY) {
        bool first = !p->suspended && !p->pinned;
        fprintf(to, "%s priority %u", first ? " has" : "; has", p->priority);
        before = "; owns ";
    }
    if (p->least)
        fprintf(to, "%s%u core%s at least (expand)", before, p->least, rmd_plural(p->least, "s"));
    if (p->least)
        before = ", ";
    if (p->most)
        fprintf(to, "%s%u core%s at most (shrink)", before, p->most, rmd_plural(p->most, "s"));
    fprintf(to, "\n");
}

void admin_print_unmanaged(FILE *to, const struct inv_admin_snapshot *o)
{
    const struct inv_admin_unmanaged *all = rmd_admin_unmanaged(o);
    if (o->nunmanaged)
        fprintf(to, "%9s %8s %5s %-20s %5s %7s\n", "", "pid", "user", "program", "cores", "running");
    for (unsigned i = 0; i < o->nunmanaged; i++)
        fprintf(to, "unmanaged %8d %5u %-20.20s %5.2f %7u\n", all[i].pid, all[i].uid, all[i].program,
                all[i].millicores / 1000.0, all[i].running);
}

void admin_print_orders(FILE *to, const struct inv_admin_snapshot *o)
{
    const struct inv_admin_user *users = rmd_admin_users(o);
    const struct inv_admin_process *procs = rmd_admin_processes(o);
    for (unsigned i = 0; i < o->nprocs; i++)
        print_process(to, &procs[i], procs[i].uid == users[0].uid);
    for (unsigned i = 1; i < o->nusers; i++) {
        fprintf(to, "user %u: %u process%s, ", users[i].uid, users[i].nprocs,
               rmd_plural(users[i].nprocs, "es"));
        print_user(to, &users[i]);
        print_set(to, ", has cores ", users[i].has);
        fprintf(to, "\n");
    }
}

/* --- for programs */

json_t *admin_cores_json(const uint64_t *set)
{
    json_t *list = json_array();
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        if (inv_set_has(set, c))
            json_array_append_new(list, json_integer(c));
    return list;
}

static json_t *number_or_null(unsigned n) { return n ? json_integer(n) : json_null(); }

static json_t *process_json(const struct inv_admin_process *p)
{
    return json_pack("{sI si so so so so sb si}", "uid", (json_int_t)p->uid, "pid", p->pid, "rank",
                     p->rank >= 0 ? json_integer(p->rank) : json_null(), "at_least",
                     number_or_null(p->least), "at_most", number_or_null(p->most), "pinned_to",
                     p->pinned ? admin_cores_json(p->cores) : json_null(), "suspended",
                     (int)p->suspended, "priority", (int)p->priority);
}

static json_t *user_json(const struct inv_admin_user *u)
{
    json_t *quota = u->quota_millicores ? json_real(u->quota_millicores / 1000.0) : json_null();
    return json_pack("{sI si ss s{so so} so so so}", "uid", (json_int_t)u->uid, "processes",
                     (int)u->nprocs, "policy", u->policy, "limits", "cores",
                     number_or_null(u->cores), "job_cores", number_or_null(u->job_cores), "quota",
                     quota, "quota_cores", number_or_null(u->quota_cores), "has",
                     admin_cores_json(u->has));
}

static json_t *unmanaged_json(const struct inv_admin_unmanaged *p)
{
    return json_pack("{sI si ss sf si}", "uid", (json_int_t)p->uid, "pid", p->pid, "program", p->program,
                     "cores", p->millicores / 1000.0, "running_threads", (int)p->running);
}

static void add_orders_json(const struct inv_admin_snapshot *o, json_t *domain)
{
    const struct inv_admin_user *users = rmd_admin_users(o);
    const struct inv_admin_process *procs = rmd_admin_processes(o);
    json_t *list = json_array(), *orders = json_array(), *unmanaged = json_array();
    for (unsigned i = 0; i < o->nusers; i++)
        json_array_append_new(list, user_json(&users[i]));
    for (unsigned i = 0; i < o->nprocs; i++)
        json_array_append_new(orders, process_json(&procs[i]));
    for (unsigned i = 0; i < o->nunmanaged; i++)
        json_array_append_new(unmanaged, unmanaged_json(&rmd_admin_unmanaged(o)[i]));
    json_object_set_new(domain, "unmanaged", unmanaged);
    json_object_set_new(domain, "users", list);
    json_object_set_new(domain, "orders", orders);
    json_object_set_new(domain, "drained", admin_cores_json(o->drained));
    json_object_set_new(domain, "offline", admin_cores_json(o->offline));
}

json_t *admin_snapshot_json(const struct inv_admin_snapshot *o, const struct view *v)
{
    json_t *domain = view_json(v), *core;
    size_t c;
    if (!o || !domain)
        return domain;
    add_orders_json(o, domain);
    json_array_foreach(json_object_get(domain, "cores"), c, core) {
        const char *why = admin_why_away(o, v, (unsigned)c);
        json_object_set_new(core, "why_away", why ? json_string(why) : json_null());
    }
    return domain;
}
