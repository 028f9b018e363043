/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_engine.c - processes that compute, wait, lend and reclaim.  An event is the end of a
 * piece, the time at which a piece may begin, or a decision.  All events of one time are handled
 * before free cores are given out.
 */
#include "tools/rmctl/simulate/simulate_engine.h"
#include "libinvasive/base/assertion.h"

#include <math.h>
#include <stdlib.h>

static const struct sim_process *process_of(const struct sim_engine *e, unsigned i)
{
    return &e->world->work->procs[i];
}

static const struct sim_graph *graph_of(const struct sim_engine *e, unsigned i)
{
    return &e->world->work->graphs[e->actor[i].graph];
}

/* --- cores change hands */

/* Adds up the work that the process has done until now, before its held cores change. */
static void settle_actor(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    if (a->touched)
        return;
    a->touched = true;
    inv_assert(e->ntouched < e->world->work->nprocs);
    e->touched[e->ntouched++] = i;
    double passed = e->now - a->settled;
    a->settled = e->now;
    if (a->state != SIM_COMPUTES)
        return;
    a->remaining = fmax(a->remaining - passed * a->rate, 0);
    e->result->busy_s += passed * a->held;
    sim_series_add(e->result->series, e->world->band[i], e->now - passed, e->now, a->held);
}

/* Puts the process into the heaps where it belongs. */
static void update_heaps(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    if (a->state == SIM_COMPUTES && a->held < a->want)
        sim_heap_set(&e->hungry, i, a->held);
    else
        sim_heap_drop(&e->hungry, i);
    if (a->held > a->owned)
        sim_heap_set(&e->rich, i, (double)a->owned - a->held);
    else
        sim_heap_drop(&e->rich, i);
}

static void add_penalty(struct sim_engine *e, struct sim_actor *a, double core_s)
{
    a->penalty += core_s;
    e->result->lost_s += core_s;
}

/* The process takes its own cores back: free ones first, then those that others have borrowed. */
static void reclaim_cores(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    unsigned due = a->owned < a->want ? a->owned : a->want;
    while (a->held < due) {
        bool fresh = a->fresh > 0;
        if (e->pool) {
            e->pool--;
        } else {
            if (!e->rich.count)
                abort(); /* cores are lost */
            unsigned from = e->rich.numbers[0];
            settle_actor(e, from);
            inv_assert(from != i && e->actor[from].held > e->actor[from].owned);
            e->actor[from].held--;
            update_heaps(e, from);
            e->result->reclaims++;
            if (!fresh)
                add_penalty(e, a, e->world->costs.lend_s);
        }
        if (fresh) {
            a->fresh--;
            add_penalty(e, a, e->world->costs.move_s);
        }
        a->held++;
        inv_assert(a->held <= due && e->pool <= e->world->machine.ncores);
    }
}

/* Lends free cores to the processes that hold the fewest. */
static void lend_cores(struct sim_engine *e)
{
    while (e->pool && e->hungry.count) {
        unsigned i = e->hungry.numbers[0];
        struct sim_actor *a = &e->actor[i];
        settle_actor(e, i);
        e->pool--;
        a->held++;
        e->result->lends++;
        add_penalty(e, a, e->world->costs.lend_s);
        update_heaps(e, i);
    }
}

void sim_own(struct sim_engine *e, unsigned i, unsigned cores)
{
    struct sim_actor *a = &e->actor[i];
    if (a->owned == cores)
        return;
    settle_actor(e, i);
    if (cores > a->owned && a->owned)
        a->fresh += cores - a->owned;
    a->owned = cores;
    a->fresh = a->fresh < cores ? a->fresh : cores;
    if (a->state == SIM_COMPUTES) {
        update_heaps(e, i); /* what it had borrowed may be its own now: nothing to be taken from it */
        reclaim_cores(e, i);
        a->fresh = 0; /* the others it has borrowed before */
    }
    update_heaps(e, i);
}

/* --- pieces */

static void begin_piece(struct sim_engine *e, unsigned i)
{
    const struct sim_piece *piece = sim_piece_at(process_of(e, i), &e->actor[i].at);
    struct sim_actor *a = &e->actor[i];
    bool first = a->state == SIM_ABSENT;
    settle_actor(e, i);
    a->state = SIM_COMPUTES;
    if (!first)
        a->wait_s += (e->now - a->ended - a->wait_s) / 4;
    a->graph = piece->graph;
    a->remaining = piece->work;
    a->began = e->now;
    a->want = (unsigned)sim_useful(process_of(e, i), graph_of(e, i), e->world->machine.ncores);
    sim_heap_drop(&e->events, i);
    if (a->held > a->want) {
        e->pool += a->held - a->want;
        a->held = a->want;
    }
    reclaim_cores(e, i);
    update_heaps(e, i);
    if (first)
        sim_news(e, true);
    sim_foreseen(e, i, piece->work);
}

static void stop_spinning(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    a->spins = false;
    e->pool += a->held;
    inv_assert(e->pool <= e->world->machine.ncores);
    a->held = 0;
    update_heaps(e, i);
}

/* The process waits for the other ranks: it lends its cores at once, or spins first. */
static void wait_for_others(struct sim_engine *e, unsigned i, bool last)
{
    struct sim_actor *a = &e->actor[i];
    double spin = e->world->costs.lend_s;
    a->state = SIM_WAITS;
    a->spins = !last && a->wait_s < spin;
    if (a->spins)
        sim_heap_set(&e->events, i, e->now + spin);
    else
        stop_spinning(e, i);
    update_heaps(e, i);
}

/* All processes of the job have done their pieces. */
static void next_round(struct sim_engine *e, unsigned job)
{
    const struct sim_workload *w = e->world->work;
    const struct sim_job *j = &w->jobs[job];
    for (unsigned k = 0; k < j->count; k++) {
        unsigned i = w->member[j->first + k];
        const struct sim_piece *piece = sim_piece_at(&w->procs[i], &e->actor[i].at);
        if (!piece)
            continue;
        e->busy[job]++;
        if (e->actor[i].spins && piece->time > e->now)
            stop_spinning(e, i);
        e->actor[i].spins = false;
        sim_heap_set(&e->events, i, fmax(e->now, piece->time));
    }
}

static void end_process(struct sim_engine *e, unsigned i)
{
    inv_assert(e->left > 0);
    e->actor[i].state = SIM_ENDED;
    e->left--;
    e->result->job_end[process_of(e, i)->job] = e->now;
    sim_own(e, i, 0);
    sim_news(e, true);
}

static void end_piece(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    const struct sim_process *p = process_of(e, i);
    double work = sim_piece_at(p, &a->at)->work;
    settle_actor(e, i);
    sim_heap_drop(&e->events, i);
    sim_advance(p, &a->at);
    sim_measured(e, i, work, e->now - a->began);
    const struct sim_piece *next = sim_piece_at(p, &a->at);
    bool goes_on = next && next->time <= e->now && e->busy[p->job] == 1;
    a->ended = e->now;
    if (!goes_on) /* else it never waits, and keeps what it holds */
        wait_for_others(e, i, !next);
    if (!next)
        end_process(e, i);
    inv_assert(e->busy[p->job] > 0);
    if (--e->busy[p->job] == 0)
        next_round(e, p->job);
    if (goes_on)
        begin_piece(e, i);
}

static void handle_event(struct sim_engine *e, unsigned i)
{
    struct sim_actor *a = &e->actor[i];
    if (a->state == SIM_COMPUTES) {
        end_piece(e, i);
    } else if (a->spins) {
        sim_heap_drop(&e->events, i);
        stop_spinning(e, i);
    } else {
        begin_piece(e, i);
    }
}

/* The mean speed of the cores that the process holds. */
static double speed_of_held(const struct sim_engine *e, const struct sim_actor *a)
{
    double own = a->held < a->owned ? a->held : a->owned;
    return (own * a->speed + (a->held - own) * e->mean_speed) / a->held;
}

/* Processes whose cores or piece have changed compute on from here. */
static void continue_actors(struct sim_engine *e)
{
    for (unsigned t = 0; t < e->ntouched; t++) {
        unsigned i = e->touched[t];
        struct sim_actor *a = &e->actor[i];
        a->touched = false;
        if (a->state != SIM_COMPUTES)
            continue;
        a->rate = a->held ? rmd_curve_at(&graph_of(e, i)->curve, a->held) * speed_of_held(e, a) : 0;
        if (a->held && a->penalty > 0) {
            a->remaining += a->penalty * a->rate / a->held;
            a->penalty = 0;
        }
        if (a->rate > 0)
            sim_heap_set(&e->events, i, e->now + a->remaining / a->rate);
        else
            sim_heap_drop(&e->events, i);
    }
    e->ntouched = 0;
}

static void run_engine(struct sim_engine *e)
{
    while (e->left) {
        double next = e->events.count ? e->events.key[e->events.numbers[0]] : HUGE_VAL;
        next = fmin(next, e->decide_at);
        if (next == HUGE_VAL)
            abort(); /* no process goes on */
        e->now = fmax(e->now, next);
        while (e->events.count && e->events.key[e->events.numbers[0]] <= e->now)
            handle_event(e, e->events.numbers[0]);
        if (e->decide_at <= e->now)
            sim_decide(e);
        lend_cores(e);
        continue_actors(e);
    }
}

/* --- all of it */

static void make_heap(struct sim_heap *h, unsigned n)
{
    h->numbers = sim_allocate(n, sizeof *h->numbers);
    h->place = sim_allocate(n, sizeof *h->place);
    h->key = sim_allocate(n, sizeof *h->key);
    for (unsigned i = 0; i < n; i++)
        h->place[i] = -1;
}

static void free_heap(struct sim_heap *h)
{
    free(h->numbers);
    free(h->place);
    free(h->key);
}

/* Without a policy each process owns its equal share for good, also before it begins and after its
 * end. */
static void own_equally(struct sim_engine *e)
{
    unsigned n = e->world->work->nprocs;
    for (unsigned i = 0; i < n; i++) {
        e->needs[i].min_cores = process_of(e, i)->min_cores;
        e->needs[i].max_cores = process_of(e, i)->max_cores;
    }
    struct rmd_snapshot s = {e->world->machine.ncores, n, e->needs, e->arena,
                             e->world->costs.tuning, false};
    rmd_policy_equal(&s, e->target);
    for (unsigned i = 0, first = 0; i < n; first += e->target[i++]) {
        e->actor[i].owned = e->target[i];
        e->actor[i].speed = sim_speed_of(e->world, first, e->target[i]);
    }
}

static void sum_up(const struct sim_engine *e)
{
    const struct sim_workload *w = e->world->work;
    struct sim_result *r = e->result;
    for (unsigned j = 0; j < w->njobs; j++) {
        r->turnaround_s += (r->job_end[j] - sim_job_begin(w, j)) / w->njobs;
        r->makespan_s = fmax(r->makespan_s, r->job_end[j]);
    }
}

void sim_run_managed(const struct sim_world *world, const struct rmd_policy *policy,
                     struct sim_result *result)
{
    const struct sim_workload *w = world->work;
    struct sim_engine e = {.world = world, .policy = policy, .result = result};
    e.pool = world->machine.ncores;
    e.mean_speed = sim_speed_of(world, 0, world->machine.ncores);
    e.left = w->nprocs;
    e.actor = sim_allocate(w->nprocs, sizeof *e.actor);
    for (unsigned i = 0; i < w->nprocs; i++)
        e.actor[i].speed = 1;
    e.busy = sim_allocate(w->njobs, sizeof *e.busy);
    e.touched = sim_allocate(w->nprocs, sizeof *e.touched);
    make_heap(&e.events, w->nprocs);
    make_heap(&e.hungry, w->nprocs);
    make_heap(&e.rich, w->nprocs);
    sim_manager_begin(&e);
    if (!policy)
        own_equally(&e);
    for (unsigned j = 0; j < w->njobs; j++)
        next_round(&e, j);
    run_engine(&e);
    sum_up(&e);
    sim_manager_end(&e);
    free_heap(&e.events);
    free_heap(&e.hungry);
    free_heap(&e.rich);
    free(e.actor);
    free(e.busy);
    free(e.touched);
}
