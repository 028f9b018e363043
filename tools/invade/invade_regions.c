/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_regions.c - parallel regions by outlined function, what their team sizes cost, and what teams
 * that are too small may cost.  The method is in invade(1), Parallel regions.
 *
 * Records come from memory to which the processes may write anything (invade_model.c).
 */
#include "invade_bounds.h"
#include "invade_model.h"

#include <stdlib.h>
#include <string.h>

/* Core time of a sleep and its wake-up, and of the begin and end of one more implicit task; the
 * longest time that the runtime counts as a switch. */
static const double sleep_s = 6e-6, start_s = 5e-8, switch_most_s = 2e-6;

enum { THREADS_MOST = 1 << 16 };

/* --- one process */

static void fill_place(struct place *to, const struct inv_record *r, const struct inv_function *f)
{
    uint32_t module = load_number32(&f->named);
    to->entry = true;
    to->offset = f->offset;
    if (module < 1 || module > INV_MODULES)
        return;
    const char *name = r->module[module - 1];
    copy_printable(to->module, sizeof to->module, name, sizeof r->module[0]);
    memcpy(to->file, name, sizeof to->file);
    to->file[sizeof to->file - 1] = '\0';
}

/* Mean of a sum over regions. */
static double mean(uint64_t sum, uint64_t regions, double low, double high)
{
    return larger_of(low, smaller_of(high, (double)sum / (double)regions));
}

/* The seconds that teams of `all` cores would save, where a process has had `cores` of them. */
static double saving_of(const struct function *f, double threads, double cores, double all,
                        double switch_s)
{
    if (threads <= all)
        return 0;
    double spent = (double)f->switches * switch_s + (double)f->sleeps * sleep_s +
                   (double)f->regions * (threads - cores) * start_s;
    if (f->outside >= 0)
        spent = smaller_of(spent, f->outside);
    return smaller_of(f->elapsed, spent / cores * (threads - all) / (threads - cores));
}

static struct function function_from(const struct process *p, const struct inv_function *f,
                                     unsigned all, double switch_s)
{
    double life = p->until - p->from;
    uint64_t regions = load_number(&f->regions);
    struct function to = {.regions = regions,
                          .threads = load_number(&f->threads),
                          .barriers = load_number(&f->barriers),
                          .sleeps = load_number(&f->sleeps),
                          .switches = load_number(&f->switches),
                          .elapsed = smaller_of(ns_to_seconds(load_number(&f->elapsed_ns)), life * THREADS_MOST),
                          .outside = -1,
                          .processes = 1};
    fill_place(&to.place, p->record, f);
    double threads = mean(to.threads, regions, 2, THREADS_MOST);
    double cores = mean(load_number(&f->cores), regions, 1, smaller_of(threads, all));
    if (!load_number32(&f->tasks))
        to.outside = larger_of(0, to.elapsed * cores - ns_to_seconds(load_number(&f->code_ns)));
    to.saving = saving_of(&to, threads, cores, all, switch_s);
    return to;
}

static int by_elapsed(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->elapsed != y->elapsed)
        return x->elapsed > y->elapsed ? -1 : 1;
    return x->regions > y->regions ? -1 : x->regions < y->regions;
}

static void sort(struct functions *all)
{
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, by_elapsed);
}

/* Mean seconds of a switch between contexts; 0: none was timed. */
static double switch_of(const struct inv_record *r)
{
    uint64_t timed = load_number(&r->switches_timed);
    return timed ? smaller_of(switch_most_s, ns_to_seconds(load_number(&r->switches_ns)) / (double)timed) : 0;
}

bool regions_fill(struct process *p, unsigned cores)
{
    const struct inv_record *r = p->record;
    p->team_threads = (unsigned)limit_number(load_number32(&r->team_threads), 0, THREADS_MOST);
    p->switching = switch_of(r);
    if (load_number32(&r->tied))
        copy_printable(p->tied_by, sizeof p->tied_by, r->tied_by[0] ? r->tied_by : p->counters->program,
                   sizeof r->tied_by);
    uint32_t room = load_number32(&r->functions);
    room = room < INV_FUNCTIONS ? room : INV_FUNCTIONS;
    p->functions.at = room ? calloc(room, sizeof *p->functions.at) : NULL;
    if (room && !p->functions.at)
        return false;
    for (unsigned i = 0; i < room; i++) {
        const struct inv_function *f = &r->function[i];
        if (!load_number(&f->regions) || (i > 0 && !load_number32(&f->named)))
            continue;
        struct function *to = &p->functions.at[p->functions.count++];
        *to = function_from(p, f, cores, p->switching);
        to->place.other = i == 0; /* all functions for which there was no room */
        p->team_cost += to->saving;
    }
    p->team_cost = smaller_of(p->team_cost, p->until - p->from);
    sort(&p->functions);
    return true;
}

/* --- a job */

static bool same_place(const struct place *a, const struct place *b)
{
    return a->other == b->other && a->offset == b->offset && !strcmp(a->file, b->file);
}

static void merge_function(struct functions *all, const struct function *f)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct function *to = &all->at[i];
        if (!same_place(&to->place, &f->place))
            continue;
        to->regions += f->regions;
        to->threads += f->threads;
        to->barriers += f->barriers;
        to->sleeps += f->sleeps;
        to->switches += f->switches;
        to->elapsed += f->elapsed;
        to->outside = to->outside < 0 || f->outside < 0 ? -1 : to->outside + f->outside;
        to->saving += f->saving;
        to->processes++;
        return;
    }
    all->at[all->count++] = *f;
}

bool regions_merge(struct job *j)
{
    unsigned room = 0;
    for (unsigned i = 0; i < j->count; i++) {
        room += j->at[i].functions.count;
        j->team_cost += j->at[i].team_cost / j->count;
    }
    j->functions.at = room ? calloc(room, sizeof *j->functions.at) : NULL;
    if (room && !j->functions.at)
        return false;
    for (unsigned i = 0; i < j->count; i++)
        for (unsigned k = 0; k < j->at[i].functions.count; k++)
            merge_function(&j->functions, &j->at[i].functions.at[k]);
    sort(&j->functions);
    return true;
}

/* --- teams that are too small to borrow */

/* Core-seconds of processes on the same node that waited, and that no process used. */
static double idle_beside(const struct job *j, const struct process *p)
{
    double idle = 0;
    for (unsigned i = 0; i < j->count; i++) {
        const struct process *other = &j->at[i];
        if (other != p && other->node == p->node)
            idle += other->waiting - ns_to_seconds(other->counters->lent_used_ns);
    }
    return larger_of(0, idle);
}

/* Seconds that the process computed with a team.  Teams of one thread are not timed: they are a
 * part of this. */
static double in_teams(const struct process *p)
{
    double elapsed = 0;
    for (unsigned i = 0; i < p->functions.count; i++)
        elapsed += p->functions.at[i].elapsed;
    return p->team_threads > 1 ? smaller_of(elapsed, p->useful) : p->useful;
}

/* With several ranks for each core teams of one thread are the default, since larger ones lose. */
static bool has_several_ranks_a_core(const struct job *j, unsigned node, double cores)
{
    unsigned here = 0;
    for (unsigned i = 0; i < j->count; i++)
        here += j->at[i].node == node;
    return here >= INV_SEVERAL_RANKS * cores;
}

void regions_small_teams(struct job *j, const struct launch *l)
{
    for (unsigned i = 0; i < j->count; i++) {
        const struct process *p = &j->at[i];
        double threads = p->team_threads, cores = l->nodes[p->node].cores;
        if (threads < 1 || threads >= cores || has_several_ranks_a_core(j, p->node, cores))
            continue;
        j->small_teams++;
        j->small_threads = p->team_threads > j->small_threads ? p->team_threads : j->small_threads;
        double less = smaller_of(in_teams(p) * (1 - threads / cores), idle_beside(j, p) / cores);
        j->small_gain = larger_of(j->small_gain, less);
    }
    j->small_gain = smaller_of(j->small_gain, j->metrics.gain * (j->until - j->from));
}
