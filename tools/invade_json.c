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

static void put(json_t *to, const char *name, json_t *value)
{
    json_object_set_new(to, name, value ? value : json_null());
}

static void put_real(json_t *to, const char *name, double value)
{
    put(to, name, isfinite(value) ? json_real(value) : NULL);
}

static void put_count(json_t *to, const char *name, uint64_t value)
{
    put(to, name, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

/* Null when it is empty.  What is no UTF-8 is written with question marks. */
static json_t *text(const char *s)
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

static json_t *metrics(const struct metrics *m, bool job)
{
    json_t *o = json_object();
    put_real(o, "parallel_efficiency", m->parallel_efficiency);
    put_real(o, "load_balance", m->load_balance);
    put_real(o, "communication_efficiency", m->communication_efficiency);
    if (job) {
        put_real(o, "work_balance", m->work_balance);
        put_real(o, "perfect_balance_gain", m->gain);
    }
    return o;
}

static void put_place(json_t *to, const struct place *p)
{
    char offset[24];
    snprintf(offset, sizeof offset, "0x%llx", (unsigned long long)p->offset);
    put(to, "symbol", text(p->symbol));
    put(to, "source", text(p->line));
    put(to, "module", text(p->module));
    put(to, "offset", p->other ? NULL : json_string(offset));
}

static json_t *site(const struct site *s)
{
    json_t *o = json_object();
    put(o, "function", text(s->function));
    put_place(o, &s->place);
    put_count(o, "processes", s->processes);
    put_count(o, "calls", s->calls);
    put_count(o, "sleeps", s->slept);
    put_real(o, "waited_seconds", s->waited);
    put_real(o, "longest_wait_seconds", s->longest);
    return o;
}

static json_t *sites(const struct sites *all)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < all->count; i++)
        json_array_append_new(list, site(&all->at[i]));
    return list;
}

static json_t *function(const struct function *f)
{
    json_t *o = json_object();
    put_place(o, &f->place);
    put_count(o, "processes", f->processes);
    put_count(o, "regions", f->regions);
    put_count(o, "threads", f->threads);
    put_count(o, "barriers", f->barriers);
    put_count(o, "context_switches", f->switches);
    put_count(o, "sleeps", f->sleeps);
    put_real(o, "elapsed_seconds", f->elapsed);
    put(o, "outside_core_seconds", f->outside >= 0 ? json_real(f->outside) : NULL);
    put_real(o, "team_cost_seconds", f->saving);
    return o;
}

static json_t *functions(const struct functions *all)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < all->count; i++)
        json_array_append_new(list, function(&all->at[i]));
    return list;
}

static json_t *classes(const struct class *all, unsigned count, bool job)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++) {
        const struct class *c = &all[i];
        json_t *o = json_object();
        char id[24];
        snprintf(id, sizeof id, "%016llx", (unsigned long long)c->sites);
        put(o, "id", c->sites ? json_string(id) : NULL);
        put_count(o, "count", c->count);
        put_real(o, "elapsed_seconds", c->length);
        put_real(o, "useful_seconds", c->useful);
        put_real(o, "waiting_seconds", c->waiting);
        put_real(o, "useful_core_seconds", c->core);
        put(o, "metrics", metrics(&c->metrics, job));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *process(const struct launch *l, const struct process *p, bool with_sites)
{
    const struct inv_report *r = p->counters;
    json_t *o = json_object();
    put(o, "rank", r->rank >= 0 ? json_integer(r->rank) : NULL);
    put(o, "node", text(l->nodes[p->node].name));
    put_count(o, "pid", (uint64_t)r->pid);
    put(o, "program", text(r->program));
    put(o, "end", json_string(p->end));
    put_real(o, "start_seconds", p->from);
    put_real(o, "elapsed_seconds", p->until - p->from);
    put_real(o, "useful_seconds", p->useful);
    put_real(o, "waiting_seconds", p->waiting);
    put_real(o, "useful_core_seconds", p->core);
    put(o, "cpu_seconds", p->cpu >= 0 ? json_real(p->cpu) : NULL);
    put_real(o, "owned_core_seconds", p->owned);
    put_real(o, "borrowed_core_seconds", seconds(r->borrowed_ns));
    put_real(o, "lent_core_seconds", seconds(r->lent_used_ns));
    put_count(o, "lends", r->lends);
    put_count(o, "borrows", r->borrows);
    put_count(o, "reclaims", r->reclaims);
    put_count(o, "evictions", r->evictions);
    put_real(o, "reclaim_wait_seconds", seconds(r->reclaim_wait_ns));
    put_real(o, "reclaim_wait_longest_seconds", seconds(r->reclaim_wait_max_ns));
    put_count(o, "sleeping_waits", r->waits);
    put(o, "metrics", metrics(&p->metrics, false));
    put(o, "iteration_classes", classes(p->class, p->classes, false));
    put(o, "team_threads", p->team_threads ? json_integer(p->team_threads) : NULL);
    put(o, "context_switch_seconds", p->switching > 0 ? json_real(p->switching) : NULL);
    put_real(o, "team_cost_seconds", p->team_cost);
    put(o, "kernel_threads_by", p->tied_by[0] ? json_string(p->tied_by) : NULL);
    if (with_sites) {
        put(o, "call_sites", sites(&p->sites));
        put(o, "parallel_regions", functions(&p->functions));
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

/* What addr2line knows about a job's places is true of its processes' as well. */
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

static json_t *job(const struct launch *l, struct job *j, bool with_sites)
{
    json_t *o = json_object(), *all = json_array();
    if (with_sites)
        share_names(j);
    put(o, "program", text(j->at[0].counters->program));
    put(o, "mpi", json_boolean(j->size > 0));
    put(o, "ranks", j->size ? json_integer(j->size) : NULL);
    put_count(o, "missing_ranks", j->missing);
    put(o, "launched_ranks", j->launched ? json_integer(j->launched) : NULL);
    put_real(o, "start_seconds", j->from);
    put_real(o, "elapsed_seconds", j->until - j->from);
    put_real(o, "cores", j->cores);
    put_real(o, "useful_core_seconds", j->useful_core);
    put_real(o, "without_moving_seconds", j->unmoved);
    put(o, "without_moving_is_bound", isnan(j->unmoved) ? NULL : json_boolean(j->unmoved_least));
    put(o, "metrics", metrics(&j->metrics, true));
    put(o, "iteration_classes", classes(j->class, j->classes, true));
    put_real(o, "team_cost_seconds", j->team_cost);
    put(o, "small_teams_seconds", j->small_teams ? json_real(j->small_gain) : NULL);
    if (with_sites) {
        put(o, "call_sites", sites(&j->sites));
        put(o, "parallel_regions", functions(&j->functions));
    }
    for (unsigned i = 0; i < j->count; i++)
        json_array_append_new(all, process(l, &j->at[i], with_sites));
    put(o, "processes", all);
    return o;
}

static json_t *nodes(const struct launch *l)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < l->nnodes; i++) {
        json_t *o = json_object();
        put(o, "name", text(l->nodes[i].name));
        put_count(o, "cores", l->nodes[i].cores);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *report(struct launch *l, char **command, bool with_sites)
{
    json_t *o = json_object(), *words = json_array(), *jobs = json_array();
    for (char **word = command; *word; word++)
        json_array_append_new(words, **word ? text(*word) : json_string(""));
    put_count(o, "invade_report", REPORT_VERSION);
    put(o, "invade_version", json_string(PACKAGE_VERSION));
    put(o, "command", words);
    put(o, "managed", json_boolean(l != NULL));
    if (l) {
        put(o, "exit_code", WIFEXITED(l->status) ? json_integer(WEXITSTATUS(l->status)) : NULL);
        put(o, "signal", WIFSIGNALED(l->status) ? json_integer(WTERMSIG(l->status)) : NULL);
        put_count(o, "cores", l->ncores);
        put(o, "nodes", nodes(l));
        put(o, "cores_shared", json_boolean(l->anonymous && l->count));
        put(o, "emulated", json_boolean(l->emulated));
        put(o, "elapsed_seconds", l->njobs ? json_real(l->elapsed) : NULL);
        put(o, "parallel_efficiency", l->njobs ? json_real(l->efficiency) : NULL);
        put(o, "other_programs_core_seconds", l->others >= 0 ? json_real(l->others) : NULL);
        for (unsigned i = 0; i < l->njobs; i++)
            json_array_append_new(jobs, job(l, &l->jobs[i], with_sites));
    }
    put(o, "jobs", jobs);
    return o;
}

static int write_to(FILE *f, json_t *o)
{
    return json_dumpf(o, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) | -(fputc('\n', f) < 0);
}

static int write_out(int fd, json_t *o)
{
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return -1;
    }
    int failed = write_to(f, o);
    return fclose(f) || failed ? -1 : 0;
}

static bool write_stdout(struct launch *l, char **command)
{
    json_t *o = report(l, command, true);
    errno = ENOMEM; /* what jansson does not say */
    bool good = o && !write_to(stdout, o) && !fflush(stdout);
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
        good = !write_out(fd, o) && !rename(beside, file);
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
    json_t *o = report(l, command, true);
    errno = ENOMEM;
    bool good = o && invade_json_replace(file, 0666 & ~mask, o);
    json_decref(o);
    return good;
}

char *launch_json_text(struct launch *l, char **command)
{
    json_t *o = report(l, command, false);
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(o);
    return text;
}
