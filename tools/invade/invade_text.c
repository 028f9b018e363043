/* SPDX-License-Identifier: GPL-3.0-or-later */
/* invade_text.c - a report for people.  One line for each process, then the metrics of each job. */
#define _GNU_SOURCE
#include "invade.h"
#include "invade_bounds.h"
#include "invade_model.h"
#include "rmd/loop/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_CONTROLS = 8, TOP_SITES = 5, TOP_FUNCTIONS = 8, TOP_CLASSES = 4, JOBS_MOST = 16, WHERE_BYTES = 1024 };

static void print_process(FILE *to, const struct launch *l, const struct process *p)
{
    const struct inv_report *r = p->counters;
    char rank[16] = "-";
    if (r->rank >= 0)
        snprintf(rank, sizeof rank, "%d", (int)r->rank);
    double mean = r->reclaims ? (double)r->reclaim_wait_ns / (double)r->reclaims * 1e-3 : 0;
    const struct metrics *m = &p->metrics;
    fprintf(to, "%5s %8d %-16.16s %10.3f %10.3f %6.1f %6.1f %6.1f %10.3f %10.3f %10.3f", rank,
            (int)r->pid, r->program, p->useful, p->waiting, 100 * m->parallel_efficiency,
            100 * m->load_balance, 100 * m->communication_efficiency, p->core,
            ns_to_seconds(r->lent_used_ns), ns_to_seconds(r->borrowed_ns));
    fprintf(to, " %8llu %8llu %8llu %7.0f %s", (unsigned long long)r->lends,
            (unsigned long long)r->borrows, (unsigned long long)r->reclaims, mean, p->end);
    fprintf(to, l->nnodes > 1 ? " on %s\n" : "\n", l->nodes[p->node].name);
}

/* The least part of the core time that is worth a line. */
static const double matters = 0.05;

static bool others_matter(const struct launch *l) { return l->others > matters * l->capacity; }

/* Balance does not gain the core time that other programs had, and no record says which job was
 * short of it. */
static void print_metrics(FILE *to, const struct launch *l, const struct job *j)
{
    const struct metrics *m = &j->metrics;
    fprintf(to, "parallel efficiency %5.1f %% = load balance %5.1f %% x communication %5.1f %%\n",
            100 * m->parallel_efficiency, 100 * m->load_balance, 100 * m->communication_efficiency);
    if (j->count > 1)
        fprintf(to, "the work itself is balanced to %.1f %%; ", 100 * m->work_balance);
    if (others_matter(l))
        fprintf(to, "what perfect balance would gain cannot be told beside other programs\n");
    else
        fprintf(to, "perfect balance would still gain %.1f %% of the time\n", 100 * m->gain);
}

/* "solver.c:12 (step)", "(step) in libfoo.so", "libfoo.so+0x1234" */
static void describe(char *to, const struct place *p)
{
    const char *slash = strrchr(p->module, '/');
    const char *module = slash ? slash + 1 : p->module;
    if (p->other)
        snprintf(to, WHERE_BYTES, "all other places");
    else if (p->line[0]) {
        slash = strrchr(p->line, '/');
        snprintf(to, WHERE_BYTES, "%s (%s)", slash ? slash + 1 : p->line, p->symbol);
    } else if (p->symbol[0])
        snprintf(to, WHERE_BYTES, "%s in %s", p->symbol, module);
    else
        snprintf(to, WHERE_BYTES, "%s+0x%llx", module, (unsigned long long)p->offset);
}

static void print_sites(FILE *to, struct job *j)
{
    char where[WHERE_BYTES];
    double all = 0;
    for (unsigned i = 0; i < j->sites.count; i++)
        all += j->sites.at[i].waited;
    if (all <= 0)
        return;
    unsigned shown = j->sites.count < TOP_SITES ? j->sites.count : TOP_SITES;
    places_resolve(j->sites.at, sizeof *j->sites.at, shown);
    fprintf(to, "waited most in:\n%12s %6s %10s %10s %11s  %-20s %s\n", "seconds", "share", "calls",
            "slept", "longest ms", "function", "called at");
    for (unsigned i = 0; i < shown; i++) {
        const struct site *s = &j->sites.at[i];
        if (s->waited < all / 1000)
            break;
        describe(where, &s->place);
        fprintf(to, "%12.3f %4.0f %% %10llu %10llu %11.3f  %-20s %s\n", s->waited,
                100 * s->waited / all, (unsigned long long)s->calls, (unsigned long long)s->slept,
                1e3 * s->longest, s->function, where);
    }
}

static void print_functions(FILE *to, struct job *j)
{
    char where[WHERE_BYTES], outside[16];
    double all = j->until - j->from;
    if (!j->functions.count)
        return;
    unsigned shown = j->functions.count < TOP_FUNCTIONS ? j->functions.count : TOP_FUNCTIONS;
    places_resolve(j->functions.at, sizeof *j->functions.at, shown);
    fprintf(to, "most time in parallel regions:\n%12s %10s %9s %10s %8s %8s %8s %8s %11s %8s  %s\n",
            "seconds", "regions", "a second", "mean us", "threads", "barriers", "switches",
            "sleeps", "outside c*s", "cost s", "begins at");
    for (unsigned i = 0; i < shown; i++) {
        const struct function *f = &j->functions.at[i];
        double n = (double)f->regions;
        if (f->elapsed < all / 1000)
            break;
        describe(where, &f->place);
        snprintf(outside, sizeof outside, f->outside >= 0 ? "%.3f" : "-", f->outside);
        fprintf(to, "%12.3f %10llu %9.0f %10.1f %8.1f %8.1f %8.1f %8.2f %11s %8.3f  %s\n",
                f->elapsed, (unsigned long long)f->regions, all > 0 ? n / all : 0,
                1e6 * f->elapsed / n, (double)f->threads / n, (double)f->barriers / n,
                (double)f->switches / n, (double)f->sleeps / n, outside, f->saving, where);
    }
}

/* The least part of the elapsed time for which a hint is printed; and the least saving of a smaller
 * team (s). */
static const double worth = 0.03, least_saving = 0.001;

/* 12400: "12,400" */
static void with_commas(char *to, uint64_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

/* Prints the cost of teams, for all functions together. */
static void print_team_cost(FILE *to, const struct launch *l, const struct job *j)
{
    double elapsed = j->until - j->from, inside = 0, barriers = 0;
    uint64_t regions = 0;
    char count[40];
    for (unsigned i = 0; i < j->functions.count; i++) {
        const struct function *f = &j->functions.at[i];
        if (f->saving <= 0)
            continue;
        regions += f->regions;
        inside += f->elapsed;
        barriers += (double)f->barriers;
    }
    if (!regions || j->team_cost < least_saving || j->team_cost <= worth * elapsed)
        return;
    with_commas(count, regions);
    fprintf(to, "%s regions of %.3g us with %.2g barriers each: %s%u would save about %.2g s, "
                "%.0f %% of the time\n", count, 1e6 * inside / (double)regions,
            barriers / (double)regions,
            getenv("OMP_NUM_THREADS") ? "OMP_NUM_THREADS=" : "--threads=",
            l->nodes[j->at[0].node].cores, j->team_cost, 100 * j->team_cost / elapsed);
}

/* If implicit tasks slept in regions: prints why they were kernel threads. */
static void print_what_ties(FILE *to, const struct job *j)
{
    uint64_t regions = 0, sleeps = 0;
    const char *by = "";
    for (unsigned i = 0; i < j->functions.count; i++) {
        regions += j->functions.at[i].regions;
        sleeps += j->functions.at[i].sleeps;
    }
    for (unsigned i = 0; i < j->count && !by[0]; i++)
        by = j->at[i].tied_by;
    if (!by[0] || sleeps < regions || sleeps == 0)
        return;
    fprintf(to, "implicit tasks that wait are kernel threads, which slept %.3g times in a region, because of "
                "%s: see INVASIVE_CONTEXTS and INVASIVE_BIND in invade(1)\n",
            (double)sleeps / (double)regions, by);
}

static void print_small_teams(FILE *to, const struct job *j)
{
    double elapsed = j->until - j->from;
    if (!j->small_teams || j->small_gain <= worth * elapsed)
        return;
    fprintf(to, "%u of %u ranks had teams of %u thread%s at most, beside cores that others had "
                "lent: without OMP_NUM_THREADS and omp_set_num_threads they would save up to "
                "%.2g s, %.0f %% of the time\n", j->small_teams, j->count, j->small_threads,
            rmd_plural(j->small_threads, "s"), j->small_gain, 100 * j->small_gain / elapsed);
}

static void print_classes(FILE *to, const struct job *j)
{
    if (!j->classes)
        return;
    fprintf(to, "%-12s %10s %10s %11s %10s %10s %14s\n", "iterations", "count", "mean ms",
            "efficiency", "balance", "of work", "communication");
    for (unsigned i = 0; i < j->classes && i < TOP_CLASSES; i++) {
        const struct class *c = &j->class[i];
        char name[16] = "no pattern";
        if (c->sites)
            snprintf(name, sizeof name, "class %u", i + 1);
        fprintf(to, "%-12s %10llu %10.3f %9.1f %% %8.1f %% %8.1f %% %12.1f %%\n", name,
                (unsigned long long)c->count, 1e3 * c->length / (double)c->count,
                100 * c->metrics.parallel_efficiency, 100 * c->metrics.load_balance,
                100 * c->metrics.work_balance, 100 * c->metrics.communication_efficiency);
    }
}

/* An estimate of less than this is within its error. */
static const double notable = 1.02;

/* Prints how long the job would have taken if no core had moved, if that is known. */
static void print_unmoved(FILE *to, const struct launch *l, const struct job *j)
{
    double elapsed = j->until - j->from;
    if (!(j->unmoved > 0) || elapsed <= 0)
        return;
    const char *about = j->unmoved_least ? "at least" : "about";
    if (j->unmoved < notable * elapsed)
        fprintf(to, "without moving cores this would have taken as long, %s %.3g s", about,
                j->unmoved);
    else
        fprintf(to, "without moving cores this would have taken %s %.3g s, %.2f times as long",
                about, j->unmoved, j->unmoved / elapsed);
    if (l->nnodes == 1 && j->count > l->ncores)
        fprintf(to, " (%u ranks by turns on each core)", (j->count + l->ncores - 1) / l->ncores);
    else if (l->nnodes == 1)
        fprintf(to, " (each rank on %.3g core%s of its own)", (double)l->ncores / j->count,
                j->count == l->ncores ? "" : "s");
    fprintf(to, others_matter(l) ? "; inexact beside other programs\n" : "\n");
}

/* Prints energy and power: those of the job's part, not of the whole packages. */
static void print_energy(FILE *to, const struct launch *l)
{
    if (l->counters == INV_ENERGY_FORBIDDEN)
        fprintf(to, "energy: only root may read the counters of the CPU packages; a resource manager that root runs "
                    "(rmd(8)) counts it\n");
    else if (l->counters == INV_ENERGY_GONE)
        fprintf(to, "energy: not known, since the counters of the CPU packages have vanished\n");
    else if (isfinite(l->energy) && l->elapsed > 0)
        fprintf(to, "energy of the CPU packages, by processor time: %.4g J, %.3g W\n", l->energy,
                l->energy / l->elapsed);
}

static double median_of(const struct control *c, int value)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->tried[i].value == value)
            return c->tried[i].median;
    return NAN;
}

/* "control point block, 8 to 1024: 320 for 64, 9.31 ms an iteration for 12.4; 9 values tried ..." */
static void print_control(FILE *to, const struct job *j, const struct process *p, const struct control *c)
{
    double first = median_of(c, c->first), now = median_of(c, c->now);
    fprintf(to, "control point %s, %d to %d", c->name, c->low, c->high);
    if (j->count > 1)
        fprintf(to, ", rank %d", (int)p->counters->rank);
    fprintf(to, ": %d", c->now);
    if (c->now != c->first)
        fprintf(to, " for %d", c->first);
    if (now > 0)
        fprintf(to, ", %.3g ms an iteration", 1e3 * now);
    if (now > 0 && first > 0 && c->now != c->first)
        fprintf(to, " for %.3g", 1e3 * first);
    fprintf(to, "; %u value%s tried in %llu iterations%s\n", c->count, rmd_plural(c->count, "s"),
            (unsigned long long)c->iterations, c->settled ? "" : ", and the search not over");
}

static void print_controls(FILE *to, const struct job *j)
{
    unsigned all = 0;
    for (unsigned i = 0; i < j->count; i++)
        for (unsigned k = 0; k < j->at[i].ncontrols; k++)
            if (all++ < TOP_CONTROLS)
                print_control(to, j, &j->at[i], &j->at[i].controls[k]);
    if (all > TOP_CONTROLS)
        fprintf(to, "and %u more control points\n", all - TOP_CONTROLS);
}

static void print_job(FILE *to, const struct launch *l, struct job *j)
{
    if (l->njobs > 1 && j->size)
        fprintf(to, "\n%s, %u of %d ranks: %.3f s, %.2f cores\n", j->at[0].counters->program,
                j->count, j->size, j->until - j->from, j->cores);
    else if (l->njobs > 1)
        fprintf(to, "\n%s, process %d: %.3f s, %.2f cores\n", j->at[0].counters->program,
                (int)j->at[0].counters->pid, j->until - j->from, j->cores);
    else if (j->missing)
        fprintf(to, "%u of %d ranks are missing: unmanaged, or ended on another node before "
                    "MPI_Finalize\n", j->missing, j->size);
    print_unmoved(to, l, j);
    print_metrics(to, l, j);
    print_what_ties(to, j);
    print_team_cost(to, l, j);
    print_small_teams(to, j);
    print_classes(to, j);
    print_controls(to, j);
    print_functions(to, j);
    print_sites(to, j);
}

static void print_others(FILE *to, const struct launch *l)
{
    if (others_matter(l))
        fprintf(to, "other programs had our cores for %.3f core-seconds, %.1f %% of the time\n",
                l->others, 100 * l->others / l->capacity);
}

/* Jobs of one rank each where one job was meant; see mpi-shim/setup/launcher.c. */
static void print_strangers(FILE *to, const struct launch *l)
{
    unsigned jobs = 0, launched = 0;
    for (unsigned i = 0; i < l->njobs; i++) {
        jobs += l->jobs[i].launched > 0;
        launched = l->jobs[i].launched > launched ? l->jobs[i].launched : launched;
    }
    if (jobs)
        fprintf(to, "%u process%s: rank 0 of 1 each, though mpiexec has started %u ranks: mpiexec "
                    "and the program are of different MPI libraries\n", jobs,
                rmd_plural(jobs, "es"), launched);
}

void launch_print(FILE *to, struct launch *l)
{
    fprintf(to, "invade: %s: %.3f s, %u core%s", l->command[0], l->elapsed, l->ncores,
            rmd_plural(l->ncores, "s"));
    if (l->nnodes > 1)
        fprintf(to, " of %u nodes", l->nnodes);
    fprintf(to, ", %u process%s\n", l->count, rmd_plural(l->count, "es"));
    fprintf(to, "%5s %8s %-16s %10s %10s %6s %6s %6s %10s %10s %10s %8s %8s %8s %7s\n", "rank",
            "pid", "program", "useful s", "waiting s", "eff %", "load %", "comm %", "used c*s",
            "lent c*s", "borrow c*s", "lends", "borrows", "reclaims", "mean us");
    for (unsigned i = 0; i < l->njobs; i++)
        for (unsigned p = 0; p < l->jobs[i].count; p++)
            print_process(to, l, &l->jobs[i].at[p]);
    if (l->njobs > 1)
        fprintf(to, "parallel efficiency %5.1f %% of all together\n", 100 * l->efficiency);
    print_strangers(to, l);
    print_others(to, l);
    print_energy(to, l);
    for (unsigned i = 0; i < l->njobs && i < JOBS_MOST; i++)
        print_job(to, l, &l->jobs[i]);
    if (l->njobs > JOBS_MOST)
        fprintf(to, "\nand %u more\n", l->njobs - JOBS_MOST);
}
