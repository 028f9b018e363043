/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_status.c - rmctl status: what is there now, as tables or JSON. */
#define _GNU_SOURCE
#include "client/client.h"
#include "tools/rmctl/rmctl.h"
#include "tools/rmctl/rmctl_admin_snapshot.h"
#include "tools/rmctl/rmctl_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- for people */

static const char *name_slot(int slot, char text[16])
{
    if (slot == VIEW_NOBODY)
        return "-";
    if (slot == VIEW_AWAY)
        return "away";
    snprintf(text, 16, "%d", slot);
    return text;
}

static void print_cores(const struct view *v, const struct inv_admin_snapshot *o)
{
    bool uneven = false;
    for (unsigned c = 1; c < v->ncores; c++)
        uneven |= v->core[c].speed != v->core[0].speed;
    printf("%5s %5s %s%6s %7s %8s %-7s %s\n", "core", "cpu", uneven ? "speed " : "", "owner", "holder",
           "thread", "reclaim", "away");
    for (unsigned c = 0; c < v->ncores; c++) {
        const struct view_core *core = &v->core[c];
        char owner[16], holder[16], cpu[16] = "-", thread[16] = "-", speed[16] = "";
        if (core->cpu >= 0)
            snprintf(cpu, sizeof cpu, "%d", core->cpu);
        if (uneven)
            snprintf(speed, sizeof speed, "%5.2f ", core->speed);
        if (core->thread)
            snprintf(thread, sizeof thread, "%d", core->thread);
        const char *why = admin_why_away(o, v, c);
        printf("%5u %5s %s%6s %7s %8s %-7s %s\n", c, cpu, speed, name_slot(core->owner, owner),
               name_slot(core->holder, holder), thread, core->asked ? "asked" : "-",
               why ? why : "-");
    }
}

static void print_process(const struct view_process *p)
{
    char rank[16] = "-";
    if (p->rank >= 0)
        snprintf(rank, sizeof rank, "%d", p->rank);
    printf("%5u %8d %5s %-20.20s %5u %5u %6s %10.4g\n", p->slot, p->pid, rank, p->program,
           p->owned, p->held, p->wants ? "yes" : "no", p->workload);
}

static void print_counters(const struct view_process *p)
{
    double mean = p->reclaims ? (double)p->reclaim_wait_ns / (double)p->reclaims * 1e-3 : 0;
    printf("%5u %10llu %10llu %10llu %10llu %10.1f %10.1f\n", p->slot,
           (unsigned long long)p->lends, (unsigned long long)p->borrows,
           (unsigned long long)p->reclaims, (unsigned long long)p->evictions, mean,
           (double)p->reclaim_wait_max_ns * 1e-3);
}

/* "1:1 2:1.9 4:3.2": the points of S(c); "-" when it is unknown. */
static void print_scalability(const struct view_process *p)
{
    unsigned n = inv_scalability_points(&p->graph);
    printf("%5u ", p->slot);
    for (unsigned i = 0; i < n; i++)
        printf(" %u:%.3g", p->graph.point[i].cores, (double)p->graph.point[i].speedup);
    printf("%s\n", !p->graph_valid ? " not valid" : n ? "" : " -");
}

static void print_processes(const struct view *v)
{
    if (!v->nprocs) {
        printf("no process\n");
        return;
    }
    printf("%5s %8s %5s %-20s %5s %5s %6s %10s\n", "slot", "pid", "rank", "program", "owned",
           "held", "wants", "workload");
    for (unsigned i = 0; i < v->nprocs; i++)
        print_process(&v->process[i]);
    printf("%5s %10s %10s %10s %10s %10s %10s\n", "slot", "lends", "borrows", "reclaims",
           "evictions", "mean us", "max us");
    for (unsigned i = 0; i < v->nprocs; i++)
        print_counters(&v->process[i]);
    printf("%5s  %s\n", "slot", "scalability, cores:speed-up");
    for (unsigned i = 0; i < v->nprocs; i++)
        print_scalability(&v->process[i]);
}

static void print_view(const struct view *v, uint32_t uid, const struct inv_admin_snapshot *o)
{
    printf("domain %s: ", v->socket);
    if (rmctl_of_another(uid))
        printf("user %u, ", (unsigned)uid);
    if (v->rmd_pid)
        printf("rmd %u, ", v->rmd_pid);
    printf("%u %scores, %s, reclaim bound %u us", v->ncores, v->emulated ? "emulated " : "",
           v->pinned ? "pinned" : "anonymous tokens", v->reclaim_bound_us);
    if (v->pinned)
        printf(", owners changed %llu times", (unsigned long long)v->owner_moves);
    else
        printf(", %d free", v->free_tokens);
    printf("\n");
    if (o)
        admin_print_head(stdout, o);
    if (v->pinned)
        print_cores(v, o);
    print_processes(v);
    if (o) {
        admin_print_unmanaged(stdout, o);
        admin_print_orders(stdout, o);
    }
}

/* --- for programs */

/* The slot's number, null if there is none, or "away". */
static json_t *slot_json(int slot)
{
    return slot >= 0 ? json_integer(slot) : slot == VIEW_AWAY ? json_string("away") : json_null();
}

static json_t *core_json(const struct view_core *c, unsigned number)
{
    return json_pack("{si so sf so so so sb}", "core", (int)number, "cpu",
                     c->cpu >= 0 ? json_integer(c->cpu) : json_null(), "speed", c->speed, "owner",
                     slot_json(c->owner),
                     "holder", slot_json(c->holder), "thread",
                     c->thread ? json_integer(c->thread) : json_null(), "asked_back", c->asked);
}

static json_t *graph_json(const struct view_process *p)
{
    json_t *points = json_array();
    for (unsigned i = 0; p->graph_valid && i < inv_scalability_points(&p->graph); i++)
        json_array_append_new(points, json_pack("[if]", (int)p->graph.point[i].cores,
                                                (double)p->graph.point[i].speedup));
    return points;
}

static json_t *process_json(const struct view_process *p)
{
    return json_pack(
        "{si si so ss si si sb sf sb so so s{sI sI sI sI sf sf sf sf sf sf sf sI}}", "slot",
        (int)p->slot, "pid", p->pid, "rank", p->rank >= 0 ? json_integer(p->rank) : json_null(),
        "program", p->program, "owned_cores", (int)p->owned, "held_cores", (int)p->held,
        "wants_cores", p->wants, "workload", isfinite(p->workload) ? p->workload : 0.0,
        "workload_measured", p->workload_measured,
        "delivered", p->delivered > 0 && p->delivered <= 1 ? json_real(p->delivered) : json_null(),
        "scalability", graph_json(p), "counters", "lends", (json_int_t)p->lends, "borrows",
        (json_int_t)p->borrows, "reclaims", (json_int_t)p->reclaims, "evictions",
        (json_int_t)p->evictions, "reclaim_wait_s", (double)p->reclaim_wait_ns * 1e-9,
        "reclaim_wait_max_s", (double)p->reclaim_wait_max_ns * 1e-9, "borrowed_core_s",
        (double)p->borrowed_ns * 1e-9, "lent_core_s", (double)p->lent_used_ns * 1e-9,
        "held_core_s", (double)p->held_ns * 1e-9, "useful_s", (double)p->useful_ns * 1e-9,
        "wait_s", (double)p->wait_ns * 1e-9, "waits", (json_int_t)p->waits);
}

json_t *view_json(const struct view *v)
{
    json_t *cores = json_array(), *processes = json_array();
    for (unsigned c = 0; v->pinned && c < v->ncores; c++)
        json_array_append_new(cores, core_json(&v->core[c], c));
    for (unsigned i = 0; i < v->nprocs; i++)
        json_array_append_new(processes, process_json(&v->process[i]));
    return json_pack("{ss si si sb ss si sI so so so}", "socket", v->socket, "rmd",
                     (int)v->rmd_pid, "ncores", (int)v->ncores, "emulated", v->emulated, "mode",
                     v->pinned ? "pinned" : "tokens", "reclaim_bound_us", (int)v->reclaim_bound_us,
                     "owner_moves", (json_int_t)v->owner_moves, "free_tokens",
                     v->pinned ? json_null() : json_integer(v->free_tokens), "cores", cores,
                     "processes", processes);
}

/* --- */

static const struct argp_option status_options[] = {
    RMCTL_USER_OPTION("of this user, for an operator; default: your own"), {0}};

static error_t parse_status_option(int key, char *arg, struct argp_state *state)
{
    struct rmd_client_user *of = state->input;
    if (key != RMCTL_USER_KEY)
        return ARGP_ERR_UNKNOWN;
    of->uid = rmctl_user(state, arg);
    return 0;
}

static int run_status(int argc, char **argv)
{
    struct rmctl_sockets sockets;
    struct view view;
    struct rmd_client_user of = {.uid = INV_UNSAID};
    rmctl_parse(argc, argv, status_options, parse_status_option, "",
                "Cores, processes and counters as they are now.", &of);
    if (!rmctl_find_for(&sockets, of.uid))
        return RMCTL_FAILED;
    json_t *domains = rmctl_common.json ? json_array() : NULL;
    unsigned found = 0;
    for (unsigned i = 0; i < sockets.count; i++) {
        struct inv_table *t = rmd_client_observe(sockets.name[i], &of);
        if (!t) {
            if (sockets.count == 1 || sockets.told)
                rmctl_complain_of("look into", sockets.name[i], &of);
            continue;
        }
        view_read(&view, t, sockets.name[i]);
        inv_table_unmap(t);
        found++;
        struct inv_admin_snapshot *o = rmd_client_admin_snapshot(sockets.name[i], of.uid);
        if (domains)
            json_array_append_new(domains, admin_snapshot_json(o, &view));
        else
            print_view(&view, of.uid, o);
        free(o);
    }
    if (!found || !domains) {
        json_decref(domains);
        return found ? RMCTL_OK : RMCTL_FAILED;
    }
    return rmctl_print_json(json_pack("{so}", "domains", domains));
}

const struct rmctl_command rmctl_status_command = {
    "status", "cores, processes, counters, as they are now (the default)", run_status, status_options};
