/* SPDX-License-Identifier: GPL-3.0-or-later */
/* simulate_print.c - see simulate_print.h.  Pictures are drawn by tools/simulate_picture.py. */
#define _GNU_SOURCE
#include "tools/rmctl/simulate/simulate_print.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef INV_PKGLIBDIR
#define INV_PKGLIBDIR "/usr/local/lib/invasive"
#endif

/* The part of all cores' time in which they did work. */
static double efficiency(const struct sim_report *r, const struct sim_result *s)
{
    double all = s->makespan_s * r->world->machine.ncores;
    return all > 0 ? r->bound->work_s / all : 1;
}

static double part_of_bound(const struct sim_report *r, const struct sim_result *s)
{
    return r->bound->total_s > 0 ? s->makespan_s / r->bound->total_s : 1;
}

static double busy_part(const struct sim_report *r, const struct sim_result *s)
{
    double all = s->makespan_s * r->world->machine.ncores;
    return all > 0 ? s->busy_s / all : 1;
}

void sim_print_table(const struct sim_report *r, FILE *to)
{
    const struct sim_workload *w = r->world->work;
    unsigned ncores = r->world->machine.ncores;
    fprintf(to, "%u core%s (%s), %u process%s in %u job%s, %.6g core seconds of work\n", ncores,
            rmd_plural(ncores, "s"), r->machine, w->nprocs, rmd_plural(w->nprocs, "es"), w->njobs,
            rmd_plural(w->njobs, "s"), r->bound->work_s);
    fprintf(to, "%-13s %11s %8s %6s %6s %11s %9s %8s %9s %10s %10s %6s\n", "schedule", "seconds",
            "of bound", "effic.", "busy", "turnaround", "decisions", "changes", "moves", "lends",
            "reclaims", "nodes");
    for (unsigned k = 0; k < r->nresults; k++) {
        const struct sim_result *s = &r->result[k];
        fprintf(to, "%-13s %11.6g %8.4g %5.1f%% %5.1f%% %11.6g %9lu %8lu %9lu %10lu %10lu", s->name,
                s->makespan_s, part_of_bound(r, s), 100 * efficiency(r, s), 100 * busy_part(r, s),
                s->turnaround_s, s->decisions, s->changes, s->moves, s->lends, s->reclaims);
        if (s->changes)
            fprintf(to, " %6.3g\n", s->nodes);
        else
            fprintf(to, " %6s\n", "-");
    }
    fprintf(to, "%-13s %11.6g %8d %5.1f%%\n", "(clairvoyant)", r->bound->total_s, 1,
            r->bound->total_s > 0 ? 100 * r->bound->work_s / r->bound->total_s /
                                        r->world->machine.ncores : 100);
    fprintf(to, "No schedule takes less than the clairvoyant bound: all work on all cores %.6g s, "
                "the longest job alone %.6g s.\n", r->bound->capacity_s, r->bound->path_s);
}

/* --- decisions */

static const char *const outcomes[] = {"members changed", "worthwhile", "not worthwhile"};

void sim_print_decisions(const struct sim_result *s, FILE *to)
{
    for (unsigned long k = 0; s->decision && k < s->decisions; k++) {
        const struct sim_decision *d = &s->decision[k];
        fprintf(to, "%12.6f %-12s %6u processes  gain %6.2f %%  %s, %u moved\n", d->time, s->name,
                d->processes, 100 * d->gain, outcomes[d->outcome], d->moved);
    }
}

static void print_decision(const struct sim_decision *d, FILE *to)
{
    fprintf(to, "    {\"time\": %.15g, \"processes\": %u, \"gain\": %.15g, \"outcome\": \"%s\", "
                "\"moved\": %u}", d->time, d->processes, d->gain, outcomes[d->outcome], d->moved);
}

/* --- all of it as JSON */

/* Names have no quotes (simulate_workload.c), the machine was parsed. */
static void print_text(const char *text, FILE *to)
{
    fputc('"', to);
    for (; *text; text++)
        fprintf(to, *text == '\\' ? "\\\\" : "%c", *text);
    fputc('"', to);
}

static void print_result(const struct sim_report *r, const struct sim_result *s, FILE *to)
{
    fprintf(to, "  {\"name\": \"%s\", \"about\": \"%s\",\n", s->name, s->about);
    fprintf(to, "   \"seconds\": %.15g, \"of_bound\": %.15g, \"efficiency\": %.15g,\n",
            s->makespan_s, part_of_bound(r, s), efficiency(r, s));
    fprintf(to, "   \"busy_core_seconds\": %.15g, \"lost_core_seconds\": %.15g,\n", s->busy_s,
            s->lost_s);
    fprintf(to, "   \"turnaround_s\": %.15g, \"decisions\": %lu, \"changes\": %lu, "
                "\"moves\": %lu,\n", s->turnaround_s, s->decisions, s->changes, s->moves);
    fprintf(to, "   \"lends\": %lu, \"reclaims\": %lu, \"nodes_per_process\": %.15g,\n", s->lends,
            s->reclaims, s->nodes);
    fprintf(to, "   \"job_end_s\": [");
    for (unsigned j = 0; j < r->world->work->njobs; j++)
        fprintf(to, "%s%.15g", j ? ", " : "", s->job_end[j]);
    fprintf(to, "]");
    if (r->world->decisions)
        fprintf(to, ",\n   \"decision\": [\n");
    for (unsigned long k = 0; s->decision && k < s->decisions; k++) {
        print_decision(&s->decision[k], to);
        fprintf(to, k + 1 < s->decisions ? ",\n" : "\n");
    }
    fprintf(to, r->world->decisions ? "   ]}" : "}");
}

void sim_print_json(const struct sim_report *r, FILE *to)
{
    const struct sim_workload *w = r->world->work;
    const struct sim_costs *c = &r->world->costs;
    fprintf(to, "{\"machine\": {\"cores\": %u, \"description\": ", r->world->machine.ncores);
    print_text(r->machine, to);
    fprintf(to, "},\n \"workload\": {\"processes\": %u, \"core_seconds\": %.15g, \"jobs\": [",
            w->nprocs, r->bound->work_s);
    for (unsigned j = 0; j < w->njobs; j++) {
        fprintf(to, j ? ", " : "");
        print_text(w->jobs[j].name, to);
    }
    fprintf(to, "]},\n \"costs\": {\"move_s\": %.15g, \"lend_s\": %.15g, \"decision_s\": %.15g},\n",
            c->move_s, c->lend_s, c->decision_s);
    fprintf(to, " \"bound\": {\"seconds\": %.15g, \"capacity_s\": %.15g, \"path_s\": %.15g, "
                "\"job_end_s\": [", r->bound->total_s, r->bound->capacity_s, r->bound->path_s);
    for (unsigned j = 0; j < w->njobs; j++)
        fprintf(to, "%s%.15g", j ? ", " : "", r->bound->job_end[j]);
    fprintf(to, "]},\n \"schedules\": [\n");
    for (unsigned k = 0; k < r->nresults; k++) {
        print_result(r, &r->result[k], to);
        fprintf(to, k + 1 < r->nresults ? ",\n" : "\n");
    }
    fprintf(to, " ]}\n");
}

/* --- cores over time */

static void print_one_series(const struct sim_report *r, const struct sim_result *s, FILE *to)
{
    unsigned bins = (unsigned)(s->makespan_s / s->series->bin_s) + 1;
    fprintf(to, "  {\"name\": \"%s\", \"seconds\": %.9g, \"bin_s\": %.9g, \"cores\": [", s->name,
            s->makespan_s, s->series->bin_s);
    for (unsigned b = 0; b < r->bands->count; b++) {
        fprintf(to, "%s\n   [", b ? "," : "");
        for (unsigned k = 0; k < SIM_BINS && k < bins; k++)
            fprintf(to, "%s%.6g", k ? ", " : "", s->series->busy[b][k] / s->series->bin_s);
        fprintf(to, "]");
    }
    fprintf(to, "]}");
}

static void print_series(const struct sim_report *r, FILE *to)
{
    fprintf(to, "{\"cores\": %u, \"bound_s\": %.9g, \"bands\": [", r->world->machine.ncores,
            r->bound->total_s);
    for (unsigned b = 0; b < r->bands->count; b++) {
        fprintf(to, b ? ", " : "");
        print_text(r->bands->name[b], to);
    }
    fprintf(to, "],\n \"schedules\": [\n");
    for (unsigned k = 0; k < r->nresults; k++) {
        print_one_series(r, &r->result[k], to);
        fprintf(to, k + 1 < r->nresults ? ",\n" : "\n");
    }
    fprintf(to, " ]}\n");
}

bool sim_write_series(const struct sim_report *r, const char *path)
{
    FILE *f = fopen(path, "we");
    bool good = f != NULL;
    if (f) {
        print_series(r, f);
        good = !ferror(f);
        good = fclose(f) == 0 && good;
    }
    if (!good)
        fprintf(stderr, "rmctl simulate: %s: %s\n", path, strerror(errno));
    return good;
}

/* Finds the script beside rmctl, as in the build tree, or where it is installed. */
static void find_script(char *path, size_t size)
{
    static const char name[] = "/../lib/invasive/simulate_picture.py";
    ssize_t length = readlink("/proc/self/exe", path, size - sizeof name);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        strcpy(slash, name);
    if (!slash || access(path, R_OK))
        snprintf(path, size, "%s", INV_PKGLIBDIR "/simulate_picture.py");
}

static int run_script(const char *script, const char *picture, int input)
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        dup2(input, STDIN_FILENO);
        execlp("python3", "python3", script, picture, (char *)NULL);
        fprintf(stderr, "rmctl simulate: --picture: python3: %s\n", strerror(errno));
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool sim_draw(const struct sim_report *r, const char *path)
{
    char script[4096];
    FILE *f = tmpfile();
    if (!f) {
        fprintf(stderr, "rmctl simulate: --picture: a temporary file: %s\n", strerror(errno));
        return false;
    }
    print_series(r, f);
    fflush(stdout); /* the child has a copy of what is not written yet */
    bool good = fflush(f) == 0;
    lseek(fileno(f), 0, SEEK_SET);
    find_script(script, sizeof script);
    good = run_script(script, path, fileno(f)) == 0 && good;
    fclose(f);
    return good;
}
