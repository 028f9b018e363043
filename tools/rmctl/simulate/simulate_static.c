/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_static.c - schedules in which no core moves, and the bound of all schedules.  They need
 * no queue of events: the next pieces of a job begin when the slowest of its last pieces has ended.
 */
#include "tools/rmctl/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>

/* Divides the machine equally among the `count` processes of member[]: cores[] and speed[] of each
 * (by process) are the number of its cores, neighbours in the machine, and their mean speed.  With
 * more processes than cores each process gets the same part of all cores. */
static void equal_shares(const struct sim_world *w, const unsigned *member, unsigned count,
                         double *cores, double *speed)
{
    struct rmd_need *needs = sim_allocate(count, sizeof *needs);
    unsigned *target = sim_allocate(count, sizeof *target);
    for (unsigned k = 0; k < count; k++) {
        const struct sim_process *p = &w->work->procs[member[k]];
        needs[k].min_cores = p->min_cores;
        needs[k].max_cores = p->max_cores;
    }
    void *arena = sim_allocate(1, RMD_ARENA_BYTES(count));
    struct rmd_snapshot s = {w->machine.ncores, count, needs, arena, w->costs.tuning, false};
    rmd_policy_equal(&s, target);
    for (unsigned k = 0, first = 0; k < count; first += target[k++]) {
        bool parts = count > s.ncores;
        cores[member[k]] = parts ? (double)s.ncores / count : target[k];
        speed[member[k]] = sim_speed_of(w, parts ? 0 : first, parts ? s.ncores : target[k]);
    }
    free(needs);
    free(target);
    free(arena);
}

/* In how many rounds all ranks of the job repeat their present pieces; 0: all pieces are done. */
static unsigned rounds_alike(const struct sim_workload *w, const struct sim_job *j,
                             const struct sim_cursor *at)
{
    unsigned least = 0;
    for (unsigned k = 0; k < j->count; k++) {
        unsigned i = w->member[j->first + k];
        const struct sim_piece *piece = sim_piece_at(&w->procs[i], &at[i]);
        unsigned left = piece ? piece->repeat - at[i].done : 0;
        if (left && (!least || left < least))
            least = left;
    }
    return least;
}

static void advance_cursor(const struct sim_process *p, struct sim_cursor *at, unsigned rounds)
{
    if (at->piece >= p->npieces)
        return;
    at->done += rounds;
    if (at->done >= p->pieces[at->piece].repeat)
        *at = (struct sim_cursor){at->piece + 1, 0};
}

static double time_of(const struct sim_workload *w, const struct sim_piece *piece, double cores)
{
    return piece->work / rmd_curve_at(&w->graphs[piece->graph].curve, cores);
}

/* Runs a round of a job from `now` on: the present piece of each rank, once.  Returns the time at
 * which the last rank has done its piece. */
static double run_round(const struct sim_world *world, unsigned job, const double *cores,
                        const double *speed, const struct sim_cursor *at, double now, struct sim_result *result)
{
    const struct sim_workload *w = world->work;
    const struct sim_job *j = &w->jobs[job];
    double end = now;
    for (unsigned k = 0; k < j->count; k++) {
        unsigned i = w->member[j->first + k];
        const struct sim_piece *piece = sim_piece_at(&w->procs[i], &at[i]);
        if (!piece)
            continue;
        double start = fmax(now, piece->time), t = time_of(w, piece, cores[i]) / speed[i];
        end = fmax(end, start + t);
        result->busy_s += t * cores[i];
        sim_series_add(result->series, world->band[i], start, start + t, cores[i]);
    }
    return end;
}

/* Runs a job from `now` on with cores[] and speed[] (by process).  Returns the time at which it
 * ends. */
static double run_job(const struct sim_world *world, unsigned job, const double *cores,
                      const double *speed, struct sim_cursor *at, double now, struct sim_result *result)
{
    const struct sim_workload *w = world->work;
    const struct sim_job *j = &w->jobs[job];
    for (unsigned rounds; (rounds = rounds_alike(w, j, at)) > 0;) {
        for (unsigned r = 0; r < rounds; r++)
            now = run_round(world, job, cores, speed, at, now, result);
        for (unsigned k = 0; k < j->count; k++)
            advance_cursor(&w->procs[w->member[j->first + k]], &at[w->member[j->first + k]],
                           rounds);
    }
    return now;
}

static void end_job(const struct sim_world *world, unsigned job, double end,
                    struct sim_result *result)
{
    result->job_end[job] = end;
    result->makespan_s = fmax(result->makespan_s, end);
    result->turnaround_s += (end - sim_job_begin(world->work, job)) / world->work->njobs;
}

void sim_run_static(const struct sim_world *world, struct sim_result *result)
{
    const struct sim_workload *w = world->work;
    double *cores = sim_allocate(w->nprocs, sizeof *cores);
    double *speed = sim_allocate(w->nprocs, sizeof *speed);
    struct sim_cursor *at = sim_allocate(w->nprocs, sizeof *at);
    equal_shares(world, w->member, w->nprocs, cores, speed);
    for (unsigned j = 0; j < w->njobs; j++)
        end_job(world, j, run_job(world, j, cores, speed, at, sim_job_begin(w, j), result), result);
    free(cores);
    free(speed);
    free(at);
}

struct arrival {
    double time;
    unsigned job;
};

static int compare_times(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->job < y->job ? -1 : 1;
}

void sim_run_sequence(const struct sim_world *world, struct sim_result *result)
{
    const struct sim_workload *w = world->work;
    struct arrival *queue = sim_allocate(w->njobs, sizeof *queue);
    double *cores = sim_allocate(w->nprocs, sizeof *cores), now = 0;
    double *speed = sim_allocate(w->nprocs, sizeof *speed);
    struct sim_cursor *at = sim_allocate(w->nprocs, sizeof *at);
    for (unsigned j = 0; j < w->njobs; j++)
        queue[j] = (struct arrival){sim_job_begin(w, j), j};
    qsort(queue, w->njobs, sizeof *queue, compare_times);
    for (unsigned q = 0; q < w->njobs; q++) {
        unsigned j = queue[q].job;
        equal_shares(world, &w->member[w->jobs[j].first], w->jobs[j].count, cores, speed);
        now = run_job(world, j, cores, speed, at, fmax(now, queue[q].time), result);
        end_job(world, j, now, result);
    }
    free(queue);
    free(cores);
    free(speed);
    free(at);
}

/* --- the bound */

/* Work that cannot begin before a time: seconds on one core, and seconds. */
struct work_from {
    double time, work;
};

struct work_list {
    struct work_from *item;
    unsigned count;
};

static void add_work(struct work_list *list, double time, double work)
{
    list->item = sim_grown(list->item, list->count, sizeof *list->item);
    list->item[list->count++] = (struct work_from){time, work};
}

/* The earliest end of a job that is alone on the machine, if its cores can be divided and moved at
 * no cost.  Adds its work to *list, each part with the earliest time at which it can begin. */
static double earliest_end(const struct sim_world *world, unsigned job, struct sim_cursor *at,
                           struct work_list *list)
{
    const struct sim_workload *w = world->work;
    const struct sim_job *j = &w->jobs[job];
    unsigned ncores = world->machine.ncores;
    double now = 0, whole = ncores * sim_speed_of(world, 0, ncores);
    for (unsigned rounds; (rounds = rounds_alike(w, j, at)) > 0;) {
        double length = 0, end = now, sum = 0, release = HUGE_VAL;
        for (unsigned k = 0; k < j->count; k++) {
            unsigned i = w->member[j->first + k];
            const struct sim_piece *piece = sim_piece_at(&w->procs[i], &at[i]);
            if (!piece)
                continue;
            const struct sim_graph *g = &w->graphs[piece->graph];
            double cores = sim_useful(&w->procs[i], g, ncores);
            double t = piece->work / rmd_curve_at(&g->curve, cores);
            length = fmax(length, t);
            end = fmax(end, fmax(now, piece->time) + t);
            release = fmin(release, fmax(now, piece->time));
            sum += piece->work;
            advance_cursor(&w->procs[i], &at[i], rounds);
        }
        end = fmax(end, release + sum / whole);
        length = fmax(length, sum / whole);
        /* The first repetition can begin when the earliest piece of a rank may, each further one
         * when the repetition before it has ended. */
        add_work(list, release, sum);
        for (unsigned r = 1; r < rounds; r++)
            add_work(list, end + (r - 1) * length, sum);
        now = end + (rounds - 1) * length;
    }
    return now;
}

static int compare_latest_first(const void *a, const void *b)
{
    double x = ((const struct work_from *)a)->time, y = ((const struct work_from *)b)->time;
    return x > y ? -1 : x < y;
}

struct sim_bound sim_bound_of(const struct sim_world *world)
{
    const struct sim_workload *w = world->work;
    struct sim_bound b = {0};
    double whole = world->machine.ncores * sim_speed_of(world, 0, world->machine.ncores);
    struct work_list list = {NULL, 0};
    struct sim_cursor *at = sim_allocate(w->nprocs, sizeof *at);
    b.job_end = sim_allocate(w->njobs, sizeof *b.job_end);
    for (unsigned j = 0; j < w->njobs; j++) {
        b.job_end[j] = earliest_end(world, j, at, &list);
        b.path_s = fmax(b.path_s, b.job_end[j]);
    }
    qsort(list.item, list.count, sizeof *list.item, compare_latest_first);
    for (unsigned k = 0; k < list.count; k++) {
        b.work_s += list.item[k].work;
        b.capacity_s = fmax(b.capacity_s, list.item[k].time + b.work_s / whole);
    }
    b.total_s = fmax(b.path_s, b.capacity_s);
    free(list.item);
    free(at);
    return b;
}
