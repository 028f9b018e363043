/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_json.c - a report for programs: the schema is in invade(1), JSON.  Its names are a
 * promise: what they mean changes only together with "invade_report", the version.
 */
#define _GNU_SOURCE
#include "config.h"
#include "invade.h"
#include "invade_bounds.h"
#include "invade_model.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_VERSION = 1 };

static void set_value(json_t *to, const char *name, json_t *value)
{
    json_object_set_new(to, name, value ? value : json_null());
}

static void set_real(json_t *to, const char *name, double value)
{
    set_value(to, name, isfinite(value) ? json_real(value) : NULL);
}

static void set_count(json_t *to, const char *name, uint64_t value)
{
    set_value(to, name, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

/* A JSON string, or null for an empty text.  Bytes that are no UTF-8 become question marks. */
static json_t *make_text(const char *s)
{
    json_t *value = s[0] ? json_string(s) : NULL;
    char *ascii = s[0] && !value ? strdup(s) : NULL;
    for (char *c = ascii; c && *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (ascii)
        value = json_string(ascii);
    free(ascii);
    return value;
}

static json_t *make_metrics(const struct metrics *m, bool job)
{
    json_t *o = json_object();
    set_real(o, "parallel_efficiency", m->parallel_efficiency);
    set_real(o, "load_balance", m->load_balance);
    set_real(o, "communication_efficiency", m->communication_efficiency);
    if (job) {
        set_real(o, "work_balance", m->work_balance);
        set_real(o, "perfect_balance_gain", m->gain);
    }
    return o;
}

static void set_place(json_t *to, const struct place *p)
{
    char offset[24];
    snprintf(offset, sizeof offset, "0x%llx", (unsigned long long)p->offset);
    set_value(to, "symbol", make_text(p->symbol));
    set_value(to, "source", make_text(p->line));
    set_value(to, "module", make_text(p->module));
    set_value(to, "offset", p->other ? NULL : json_string(offset));
}

static json_t *make_site(const struct site *s)
{
    json_t *o = json_object();
    set_value(o, "function", make_text(s->function));
    set_place(o, &s->place);
    set_count(o, "processes", s->processes);
    set_count(o, "calls", s->calls);
    set_count(o, "sleeps", s->slept);
    set_real(o, "waited_seconds", s->waited);
    set_real(o, "longest_wait_seconds", s->longest);
    return o;
}

static json_t *make_sites(const struct sites *all)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < all->count; i++)
        json_array_append_new(list, make_site(&all->at[i]));
    return list;
}

static json_t *make_function(const struct function *f)
{
    json_t *o = json_object();
    set_place(o, &f->place);
    set_count(o, "processes", f->processes);
    set_count(o, "regions", f->regions);
    set_count(o, "threads", f->threads);
    set_count(o, "barriers", f->barriers);
    set_count(o, "context_switches", f->switches);
    set_count(o, "sleeps", f->sleeps);
    set_real(o, "elapsed_seconds", f->elapsed);
    set_value(o, "outside_core_seconds", f->outside >= 0 ? json_real(f->outside) : NULL);
    set_real(o, "team_cost_seconds", f->saving);
    return o;
}

static json_t *make_functions(const struct functions *all)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < all->count; i++)
        json_array_append_new(list, make_function(&all->at[i]));
    return list;
}

static json_t *make_classes(const struct class *all, unsigned count, bool job)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++) {
        const struct class *c = &all[i];
        json_t *o = json_object();
        char id[24];
        snprintf(id, sizeof id, "%016llx", (unsigned long long)c->sites);
        set_value(o, "id", c->sites ? json_string(id) : NULL);
        set_count(o, "count", c->count);
        set_real(o, "elapsed_seconds", c->length);
        set_real(o, "useful_seconds", c->useful);
        set_real(o, "waiting_seconds", c->waiting);
        set_real(o, "useful_core_seconds", c->core);
        set_value(o, "metrics", make_metrics(&c->metrics, job));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *make_control(const struct control *c)
{
    json_t *o = json_object(), *all = json_array();
    set_value(o, "name", json_string(c->name));
    set_value(o, "low", json_integer(c->low));
    set_value(o, "high", json_integer(c->high));
    set_value(o, "first_value", json_integer(c->first));
    set_value(o, "value", json_integer(c->now));
    set_value(o, "settled", json_boolean(c->settled));
    set_count(o, "searches", c->searches);
    set_count(o, "iterations", c->iterations);
    for (unsigned i = 0; i < c->count; i++) {
        json_t *one = json_object();
        set_value(one, "value", json_integer(c->tried[i].value));
        set_count(one, "iterations", c->tried[i].iterations);
        set_real(one, "median_seconds", c->tried[i].median);
        json_array_append_new(all, one);
    }
    set_value(o, "tried", all);
    return o;
}

static json_t *make_controls(const struct process *p)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < p->ncontrols; i++)
        json_array_append_new(list, make_control(&p->controls[i]));
    return list;
}

static json_t *make_process(const struct launch *l, const struct process *p, bool with_sites)
{
    const struct inv_report *r = p->counters;
    json_t *o = json_object();
    set_value(o, "rank", r->rank >= 0 ? json_integer(r->rank) : NULL);
    set_value(o, "node", make_text(l->nodes[p->node].name));
    set_count(o, "pid", (uint64_t)r->pid);
    set_value(o, "program", make_text(r->program));
    set_value(o, "end", json_string(p->end));
    set_real(o, "start_seconds", p->from);
    set_real(o, "elapsed_seconds", p->until - p->from);
    set_real(o, "useful_seconds", p->useful);
    set_real(o, "waiting_seconds", p->waiting);
    set_real(o, "useful_core_seconds", p->core);
    set_value(o, "cpu_seconds", p->cpu >= 0 ? json_real(p->cpu) : NULL);
    set_real(o, "owned_core_seconds", p->owned);
    set_real(o, "energy_joules", p->energy);
    set_real(o, "borrowed_core_seconds", ns_to_seconds(r->borrowed_ns));
    set_real(o, "lent_core_seconds", ns_to_seconds(r->lent_used_ns));
    set_count(o, "lends", r->lends);
    set_count(o, "borrows", r->borrows);
    set_count(o, "reclaims", r->reclaims);
    set_count(o, "evictions", r->evictions);
    set_real(o, "reclaim_wait_seconds", ns_to_seconds(r->reclaim_wait_ns));
    set_real(o, "reclaim_wait_longest_seconds", ns_to_seconds(r->reclaim_wait_max_ns));
    set_count(o, "sleeping_waits", r->waits);
    set_value(o, "metrics", make_metrics(&p->metrics, false));
    set_value(o, "iteration_classes", make_classes(p->class, p->classes, false));
    set_value(o, "team_threads", p->team_threads ? json_integer(p->team_threads) : NULL);
    set_value(o, "context_switch_seconds", p->switching > 0 ? json_real(p->switching) : NULL);
    set_real(o, "team_cost_seconds", p->team_cost);
    set_value(o, "kernel_threads_by", p->tied_by[0] ? json_string(p->tied_by) : NULL);
    set_value(o, "control_points", make_controls(p));
    if (with_sites) {
        set_value(o, "call_sites", make_sites(&p->sites));
        set_value(o, "parallel_regions", make_functions(&p->functions));
    }
    return o;
}

static void share_name(struct place *to, const struct place *from)
{
    if (from->offset != to->offset || strcmp(from->file, to->file))
        return;
    memcpy(to->symbol, from->symbol, sizeof to->symbol);
    memcpy(to->line, from->line, sizeof to->line);
}

/* Copies the names that addr2line has found for a job's places to those of its processes. */
static void share_names(struct job *j)
{
    places_resolve(j->sites.at, sizeof *j->sites.at, j->sites.count);
    places_resolve(j->functions.at, sizeof *j->functions.at, j->functions.count);
    for (unsigned i = 0; i < j->count; i++) {
        struct process *p = &j->at[i];
        for (unsigned n = 0; n < p->sites.count; n++)
            for (unsigned k = 0; k < j->sites.count; k++)
                share_name(&p->sites.at[n].place, &j->sites.at[k].place);
        for (unsigned n = 0; n < p->functions.count; n++)
            for (unsigned k = 0; k < j->functions.count; k++)
                share_name(&p->functions.at[n].place, &j->functions.at[k].place);
    }
}

static json_t *make_job(const struct launch *l, struct job *j, bool with_sites)
{
    json_t *o = json_object(), *all = json_array();
    if (with_sites)
        share_names(j);
    set_value(o, "program", make_text(j->at[0].counters->program));
    set_value(o, "mpi", json_boolean(j->size > 0));
    set_value(o, "ranks", j->size ? json_integer(j->size) : NULL);
    set_count(o, "missing_ranks", j->missing);
    set_value(o, "launched_ranks", j->launched ? json_integer(j->launched) : NULL);
    set_real(o, "start_seconds", j->from);
    set_real(o, "elapsed_seconds", j->until - j->from);
    set_real(o, "cores", j->cores);
    set_real(o, "useful_core_seconds", j->useful_core);
    set_real(o, "energy_joules", j->energy);
    set_real(o, "without_moving_seconds", j->unmoved);
    set_value(o, "without_moving_is_bound",
              isnan(j->unmoved) ? NULL : json_boolean(j->unmoved_least));
    set_value(o, "metrics", make_metrics(&j->metrics, true));
    set_value(o, "iteration_classes", make_classes(j->class, j->classes, true));
    set_real(o, "team_cost_seconds", j->team_cost);
    set_value(o, "small_teams_seconds", j->small_teams ? json_real(j->small_gain) : NULL);
    if (with_sites) {
        set_value(o, "call_sites", make_sites(&j->sites));
        set_value(o, "parallel_regions", make_functions(&j->functions));
    }
    for (unsigned i = 0; i < j->count; i++)
        json_array_append_new(all, make_process(l, &j->at[i], with_sites));
    set_value(o, "processes", all);
    return o;
}

static json_t *make_nodes(const struct launch *l)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < l->nnodes; i++) {
        json_t *o = json_object();
        set_value(o, "name", make_text(l->nodes[i].name));
        set_count(o, "cores", l->nodes[i].cores);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *make_report(struct launch *l, char **command, bool with_sites)
{
    json_t *o = json_object(), *words = json_array(), *jobs = json_array();
    for (char **word = command; *word; word++)
        json_array_append_new(words, **word ? make_text(*word) : json_string(""));
    set_count(o, "invade_report", REPORT_VERSION);
    set_value(o, "invade_version", json_string(PACKAGE_VERSION));
    set_value(o, "command", words);
    set_value(o, "managed", json_boolean(l != NULL));
    if (l) {
        set_value(o, "exit_code",
                  WIFEXITED(l->status) ? json_integer(WEXITSTATUS(l->status)) : NULL);
        set_value(o, "signal", WIFSIGNALED(l->status) ? json_integer(WTERMSIG(l->status)) : NULL);
        set_count(o, "cores", l->ncores);
        set_value(o, "nodes", make_nodes(l));
        set_value(o, "cores_shared", json_boolean(l->anonymous && l->count));
        set_value(o, "emulated", json_boolean(l->emulated));
        set_value(o, "elapsed_seconds", l->njobs ? json_real(l->elapsed) : NULL);
        set_value(o, "parallel_efficiency", l->njobs ? json_real(l->efficiency) : NULL);
        set_value(o, "other_programs_core_seconds", l->others >= 0 ? json_real(l->others) : NULL);
        static const char *const counters[] = {"none", "counted", "unreadable", "vanished"};
        set_value(o, "energy_counters", json_string(counters[l->counters]));
        set_value(o, "energy_joules", l->njobs && isfinite(l->energy) ? json_real(l->energy) : NULL);
        for (unsigned i = 0; i < l->njobs; i++)
            json_array_append_new(jobs, make_job(l, &l->jobs[i], with_sites));
    }
    set_value(o, "jobs", jobs);
    return o;
}

static int write_json(FILE *f, json_t *o)
{
    return json_dumpf(o, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) | -(fputc('\n', f) < 0);
}

static int write_json_fd(int fd, json_t *o)
{
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return -1;
    }
    int failed = write_json(f, o);
    return fclose(f) || failed ? -1 : 0;
}

static bool write_stdout(struct launch *l, char **command)
{
    json_t *o = make_report(l, command, true);
    errno = ENOMEM; /* what jansson does not say */
    bool good = o && !write_json(stdout, o) && !fflush(stdout);
    json_decref(o);
    return good;
}

bool invade_json_replace(const char *file, mode_t mode, json_t *o)
{
    char *beside = NULL;
    if (asprintf(&beside, "%s.XXXXXX", file) < 0)
        return false;
    int fd = mkostemp(beside, O_CLOEXEC);
    bool good = fd >= 0;
    if (good) {
        fchmod(fd, mode);
        errno = ENOMEM; /* what jansson does not say */
        good = !write_json_fd(fd, o) && !rename(beside, file);
        int saved = errno;
        if (!good)
            unlink(beside);
        errno = saved;
    }
    free(beside);
    return good;
}

bool launch_write_json(const char *file, struct launch *l, char **command)
{
    if (!strcmp(file, INVADE_STDOUT_JSON))
        return write_stdout(l, command);
    mode_t mask = umask(0);
    umask(mask);
    json_t *o = make_report(l, command, true);
    errno = ENOMEM;
    bool good = o && invade_json_replace(file, 0666 & ~mask, o);
    json_decref(o);
    return good;
}

char *launch_json_text(struct launch *l, char **command)
{
    json_t *o = make_report(l, command, false);
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(o);
    return text;
}
