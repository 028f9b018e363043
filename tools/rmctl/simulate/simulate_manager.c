/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_manager.c - rmd in a simulation.  As rmd/domain/divide.c, it decides after each change,
 * with the real policies and placement, and moves cores when processes have come or gone, or when
 * it is worthwhile.  New owners come world.costs.decision_s after a change; later changes until
 * then are decided with it.
 */
#include "tools/rmctl/simulate/simulate_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SAMPLE_S = 0.01; /* mpi-shim's SAMPLE_US */

void sim_manager_begin(struct sim_engine *e)
{
    unsigned n = e->world->work->nprocs, cores = e->world->machine.ncores;
    e->decide_at = HUGE_VAL;
    e->owner = sim_allocate(cores, sizeof *e->owner);
    e->needs = sim_allocate(n, sizeof *e->needs);
    e->target = sim_allocate(n, sizeof *e->target);
    e->member = sim_allocate(n, sizeof *e->member);
    e->placed = sim_allocate(n, sizeof *e->placed);
    e->arena = sim_allocate(1, RMD_ARENA_BYTES(n));
    for (unsigned c = 0; c < cores; c++)
        e->owner[c] = RMD_NO_OWNER;
}

void sim_manager_end(struct sim_engine *e)
{
    free(e->owner);
    free(e->needs);
    free(e->target);
    free(e->member);
    free(e->placed);
    free(e->arena);
}

void sim_news(struct sim_engine *e, bool must)
{
    if (!e->policy)
        return;
    e->must |= must;
    if (e->decide_at == HUGE_VAL)
        e->decide_at = e->now + e->world->costs.decision_s;
}

/* --- what processes announce */

/* Short pieces are measured together. */
void sim_measured(struct sim_engine *e, unsigned i, double work, double seconds)
{
    struct sim_actor *a = &e->actor[i];
    if (!e->policy || e->world->costs.ahead)
        return;
    a->sample_work += work;
    a->sample_s += seconds;
    a->counted++;
    if (a->sample_s < SAMPLE_S)
        return;
    if (inv_steady_add(&a->steady, a->sample_work / a->counted))
        sim_news(e, false);
    a->sample_work = a->sample_s = 0;
    a->counted = 0;
}

void sim_foreseen(struct sim_engine *e, unsigned i, double work)
{
    struct sim_actor *a = &e->actor[i];
    if (!e->policy || !e->world->costs.ahead || a->steady.told == work)
        return;
    a->steady.told = work;
    sim_news(e, false);
}

/* --- a decision */

/* Collects the present processes, and what is known of them.  Returns their number. */
static unsigned collect_needs(struct sim_engine *e)
{
    const struct sim_workload *w = e->world->work;
    unsigned n = 0;
    for (unsigned j = 0; j < w->njobs; j++) {
        unsigned first = n;
        double sum = 0;
        for (unsigned k = 0; k < w->jobs[j].count; k++) {
            unsigned i = w->member[w->jobs[j].first + k];
            const struct sim_actor *a = &e->actor[i];
            if (a->state != SIM_COMPUTES && a->state != SIM_WAITS)
                continue;
            struct rmd_need *need = &e->needs[n];
            *need = (struct rmd_need){.min_cores = w->procs[i].min_cores,
                                      .max_cores = w->procs[i].max_cores,
                                      .owned = a->owned,
                                      .job = first,
                                      .delivered = a->speed,
                                      .workload = a->steady.told};
            if (need->workload > 0)
                need->scalability = w->graphs[a->graph].points;
            sum += need->workload;
            e->member[n++] = i;
        }
        /* Measured work is told relative to the rest of the job (mpi-shim/measure/workload.c). */
        for (unsigned k = first; k < n && !e->world->costs.ahead && sum > 0; k++)
            e->needs[k].workload *= e->world->machine.ncores / sum;
    }
    return n;
}

/* Places the targets on cores.  Returns how many cores have gone from one process to another. */
static unsigned place_cores(struct sim_engine *e, unsigned n)
{
    unsigned procs = e->world->work->nprocs, ncores = e->world->machine.ncores, moves = 0;
    int *before = sim_allocate(ncores, sizeof *before);
    memcpy(before, e->owner, ncores * sizeof *before);
    for (unsigned i = 0; i < procs; i++)
        e->placed[i] = (struct rmd_placed){.target = 0, .main_core = -1, .preferred = -1};
    for (unsigned k = 0; k < n; k++)
        e->placed[e->member[k]].target = e->target[k];
    rmd_place_on(&e->world->machine, e->owner, NULL, e->placed, procs);
    for (unsigned c = 0; c < ncores; c++)
        moves += before[c] >= 0 && e->actor[before[c]].state != SIM_ENDED && e->owner[c] >= 0 &&
                 before[c] != e->owner[c];
    free(before);
    return moves;
}

/* The mean speed of the cores that each process owns now. */
static void settle_speeds(struct sim_engine *e, unsigned n)
{
    const struct sim_world *w = e->world;
    double *sum = sim_allocate(w->work->nprocs, sizeof *sum);
    for (unsigned c = 0; w->speed && c < w->machine.ncores; c++)
        if (e->owner[c] >= 0)
            sum[e->owner[c]] += sim_speed_of(w, c, 1);
    for (unsigned k = 0; w->speed && k < n; k++)
        if (e->target[k])
            e->actor[e->member[k]].speed = sum[e->member[k]] / e->target[k];
    free(sum);
}

/* Mean of the NUMA nodes in which an owner has cores. */
static double mean_nodes(const struct sim_engine *e)
{
    const struct rmd_machine *m = &e->world->machine;
    unsigned long sum = 0, owners = 0;
    int node = 0;
    for (unsigned i = 0; i < e->world->work->nprocs; i++)
        e->actor[i].nodes = 0;
    for (unsigned c = 0; c < m->ncores; c++) {
        node += c == 0 || m->apart[c] >= 3;
        if (e->owner[c] < 0)
            continue;
        struct sim_actor *a = &e->actor[e->owner[c]];
        owners += a->nodes == 0;
        sum += a->nodes != (unsigned)node;
        a->nodes = (unsigned)node;
    }
    return owners ? (double)sum / (double)owners : 0;
}

/* Processes that lose cores come first: else those that gain would find too few. */
static void apply_targets(struct sim_engine *e, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (e->target[k] < e->actor[e->member[k]].owned)
            sim_own(e, e->member[k], e->target[k]);
    for (unsigned k = 0; k < n; k++)
        if (e->target[k] > e->actor[e->member[k]].owned)
            sim_own(e, e->member[k], e->target[k]);
}

void sim_decide(struct sim_engine *e)
{
    struct sim_result *r = e->result;
    bool must = e->must;
    unsigned moves = 0, n = collect_needs(e);
    e->must = false;
    e->decide_at = HUGE_VAL;
    if (!n)
        return;
    struct rmd_snapshot s = {e->world->machine.ncores, n, e->needs, e->arena,
                             e->world->costs.tuning, false};
    e->policy->decide(&s, e->target);
    s.decided = true;
    double gain = e->world->decisions ? e->policy->gain(&s, e->target) : 0;
    bool change = must || rmd_policy_worthwhile(e->policy, &s, e->target);
    if (change) {
        moves = place_cores(e, n);
        settle_speeds(e, n);
        apply_targets(e, n);
        r->changes++;
        r->moves += moves;
        r->nodes += (mean_nodes(e) - r->nodes) / (double)r->changes;
    }
    enum sim_outcome outcome = must     ? SIM_MEMBERS_CHANGED
                               : change ? SIM_WORTHWHILE : SIM_NOT_WORTHWHILE;
    if (e->world->decisions) {
        r->decision = sim_grown(r->decision, r->decisions, sizeof *r->decision);
        r->decision[r->decisions] =
            (struct sim_decision){e->now, gain < 1 ? gain : 1, n, moves, outcome};
    }
    r->decisions++;
}
