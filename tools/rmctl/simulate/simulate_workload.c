/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_workload.c - workloads in memory and in files.  The format is comma-separated values
 * with a line of column names; rmctl-simulate(1) describes it.  Every complaint names file, line
 * and column.
 */
#define _GNU_SOURCE
#include "tools/rmctl/simulate/simulate.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- in memory */

static void *check_memory(void *p)
{
    if (p)
        return p;
    fprintf(stderr, "rmctl simulate: out of memory\n");
    exit(1);
}

void *sim_allocate(size_t count, size_t size)
{
    return check_memory(calloc(count ? count : 1, size));
}

void *sim_grown(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array; /* its size is the next power of two */
    return check_memory(reallocarray(array, count ? 2 * count : 1, size));
}

unsigned sim_add_job(struct sim_workload *w, const char *name)
{
    w->jobs = sim_grown(w->jobs, w->njobs, sizeof *w->jobs);
    struct sim_job *j = &w->jobs[w->njobs];
    *j = (struct sim_job){.first = 0};
    snprintf(j->name, sizeof j->name, "%s", name);
    return w->njobs++;
}

unsigned sim_add_process(struct sim_workload *w, const char *name, unsigned job)
{
    w->procs = sim_grown(w->procs, w->nprocs, sizeof *w->procs);
    struct sim_process *p = &w->procs[w->nprocs];
    *p = (struct sim_process){.job = job};
    snprintf(p->name, sizeof p->name, "%s", name);
    return w->nprocs++;
}

unsigned sim_add_graph(struct sim_workload *w, const struct inv_scalability *points)
{
    w->graphs = sim_grown(w->graphs, w->ngraphs, sizeof *w->graphs);
    struct sim_graph *graph = &w->graphs[w->ngraphs];
    graph->points = *points;
    rmd_curve_of(points, &graph->curve);
    return w->ngraphs++;
}

static bool is_same_piece(const struct sim_piece *a, const struct sim_piece *b)
{
    return a->work == b->work && a->graph == b->graph && a->time >= b->time;
}

/* A piece that is equal to the one before it, and begins no later, is one more repetition of that
 * one. */
void sim_add_piece(struct sim_workload *w, unsigned process, struct sim_piece piece)
{
    struct sim_process *p = &w->procs[process];
    if (p->npieces && is_same_piece(&p->pieces[p->npieces - 1], &piece)) {
        p->pieces[p->npieces - 1].repeat += piece.repeat;
        return;
    }
    p->pieces = sim_grown(p->pieces, p->npieces, sizeof *p->pieces);
    p->pieces[p->npieces++] = piece;
}

void sim_workload_close(struct sim_workload *w)
{
    w->member = sim_allocate(w->nprocs, sizeof *w->member);
    for (unsigned i = 0; i < w->nprocs; i++)
        w->jobs[w->procs[i].job].count++;
    for (unsigned j = 0, at = 0; j < w->njobs; j++) {
        w->jobs[j].first = at;
        at += w->jobs[j].count;
        w->jobs[j].count = 0;
    }
    for (unsigned i = 0; i < w->nprocs; i++) {
        struct sim_job *j = &w->jobs[w->procs[i].job];
        w->member[j->first + j->count++] = i;
    }
}

void sim_workload_free(struct sim_workload *w)
{
    for (unsigned i = 0; i < w->nprocs; i++)
        free(w->procs[i].pieces);
    free(w->procs);
    free(w->jobs);
    free(w->graphs);
    free(w->member);
    memset(w, 0, sizeof *w);
}

double sim_useful(const struct sim_process *p, const struct sim_graph *g, unsigned ncores)
{
    double most = p->max_cores && p->max_cores < ncores ? p->max_cores : ncores;
    return fmax(fmin(ceil(rmd_curve_enough(&g->curve)), most), 1);
}

double sim_job_begin(const struct sim_workload *w, unsigned job)
{
    double begin = HUGE_VAL;
    for (unsigned k = 0; k < w->jobs[job].count; k++)
        begin = fmin(begin, w->procs[w->member[w->jobs[job].first + k]].pieces[0].time);
    return begin;
}

/* --- names */

/* Open addressing; entries are numbers and 1, 0 is free. */
struct names {
    unsigned *slot, size, used;
};

static uint64_t hash_name(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

typedef const char *name_of(const struct sim_workload *w, unsigned number);

static const char *process_name(const struct sim_workload *w, unsigned i)
{
    return w->procs[i].name;
}

static const char *job_name(const struct sim_workload *w, unsigned j)
{
    return w->jobs[j].name;
}

static unsigned *find_name(const struct names *n, const struct sim_workload *w, name_of *of,
                           const char *name)
{
    unsigned at = (unsigned)(hash_name(name) % n->size);
    while (n->slot[at] && strcmp(of(w, n->slot[at] - 1), name) != 0)
        at = at + 1 < n->size ? at + 1 : 0;
    return &n->slot[at];
}

/* Twice the size, when it is half full. */
static void grow_names(struct names *n, const struct sim_workload *w, name_of *of)
{
    if (2 * n->used < n->size)
        return;
    struct names larger = {NULL, n->size ? 2 * n->size : 64, n->used};
    larger.slot = sim_allocate(larger.size, sizeof *larger.slot);
    for (unsigned i = 0; i < n->size; i++)
        if (n->slot[i])
            *find_name(&larger, w, of, of(w, n->slot[i] - 1)) = n->slot[i];
    free(n->slot);
    *n = larger;
}

/* --- files */

enum column { TIME, PROCESS, JOB, WORK, SCALABILITY, REPEAT, MIN, MAX, COLUMNS };
enum { LINE_MOST = 4096, OBLIGATORY = SCALABILITY + 1 };

static const char *const column_names[COLUMNS] = {
    "time", "process", "job", "work", "scalability", "repeat", "min", "max"};

struct reader {
    struct sim_workload *work;
    const char *file;
    unsigned long line;
    unsigned ncolumns;
    enum column column[COLUMNS];
    char *field[COLUMNS]; /* by enum column; NULL: no such column */
    struct names procs, jobs;
    unsigned last_graph;
    char last_points[LINE_MOST];
    unsigned long pieces;
};

/* Always false. */
static bool __attribute__((format(printf, 3, 4)))
print_error(const struct reader *r, const char *column, const char *why, ...)
{
    va_list more;
    va_start(more, why);
    fprintf(stderr, "rmctl simulate: %s:%lu: ", r->file, r->line);
    if (column)
        fprintf(stderr, "%s: ", column);
    vfprintf(stderr, why, more);
    fprintf(stderr, "\n");
    va_end(more);
    return false;
}

/* Fields of a line, in place; returns how many there are, at most COLUMNS + 1. */
static unsigned split_fields(char *line, char *fields[COLUMNS + 1])
{
    unsigned n = 0;
    for (char *p = line; p && n <= COLUMNS; n++) {
        fields[n] = p;
        p = strchr(p, ',');
        if (p)
            *p++ = '\0';
    }
    return n;
}

static bool read_header(struct reader *r, char *line)
{
    char *fields[COLUMNS + 1];
    unsigned seen = 0;
    r->ncolumns = split_fields(line, fields);
    for (unsigned i = 0; i < r->ncolumns; i++) {
        unsigned c = 0;
        while (c < COLUMNS && strcmp(fields[i], column_names[c]) != 0)
            c++;
        if (i == COLUMNS || c == COLUMNS)
            return print_error(r, NULL,
                               "'%.40s' is no column: use time, process, job, work, "
                               "scalability and maybe repeat, min, max",
                               fields[i]);
        if (seen >> c & 1)
            return print_error(r, NULL, "column %s is there twice", column_names[c]);
        seen |= 1u << c;
        r->column[i] = (enum column)c;
    }
    for (unsigned c = 0; c < OBLIGATORY; c++)
        if (!(seen >> c & 1))
            return print_error(r, NULL, "column %s is missing", column_names[c]);
    return true;
}

/* A decimal number in [least, most]; strtod would also take "nan", "0x1p3" and blanks. */
static bool read_number(const struct reader *r, enum column column, double least, double most,
                        double *to)
{
    const char *text = r->field[column];
    char *end;
    bool plain = *text && strspn(text, "+-.0123456789eE") == strlen(text);
    *to = plain ? strtod(text, &end) : 0;
    if (!plain || *end)
        return print_error(r, column_names[column], "'%.40s' is not a number", text);
    if (!(*to >= least && *to <= most))
        return print_error(r, column_names[column], "%.40s is not between %g and %g", text, least,
                           most);
    return true;
}

/* An absent column and an empty field are `otherwise`. */
static bool read_count(const struct reader *r, enum column column, unsigned least,
                       unsigned otherwise, unsigned *to)
{
    const char *text = r->field[column];
    *to = otherwise;
    if (!text || !*text)
        return true;
    char *end = NULL;
    unsigned long n = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (!end || *end)
        return print_error(r, column_names[column], "'%.40s' is not a whole number", text);
    if (n < least || n > SIM_PIECES)
        return print_error(r, column_names[column], "%.40s is not between %u and %d", text, least,
                           SIM_PIECES);
    *to = (unsigned)n;
    return true;
}

static bool check_name(const struct reader *r, enum column column)
{
    const char *name = r->field[column];
    if (!*name || strlen(name) >= SIM_NAME)
        return print_error(r, column_names[column], "a name has 1 to %d characters", SIM_NAME - 1);
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '"')
            return print_error(r, column_names[column],
                               "a name has printable characters without blanks "
                               "and quotes");
    return true;
}

/* "1:1 2:1.9 4:3.5", or empty: not known. */
static bool read_graph(struct reader *r, unsigned *graph)
{
    const char *text = r->field[SCALABILITY], *name = column_names[SCALABILITY];
    struct inv_scalability s = {0};
    *graph = r->last_graph;
    if (r->work->ngraphs && !strcmp(text, r->last_points))
        return true;
    unsigned n = 0, last = 0;
    for (const char *p = text; *p; n++) {
        char *end = NULL;
        if (n == INV_SCALABILITY_POINTS)
            return print_error(r, name, "more than %d points", INV_SCALABILITY_POINTS);
        unsigned long cores = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0;
        if (!end || *end != ':' || !cores || cores > SIM_PIECES)
            return print_error(r, name, "'%.40s' does not begin with CORES:SPEED-UP", p);
        bool plain = isdigit((unsigned char)end[1]);
        double speedup = plain ? strtod(end + 1, &end) : 0;
        if (!plain || (*end && *end != ' ') || !(speedup > 0 && speedup < 1e9))
            return print_error(r, name, "'%.40s' does not begin with CORES:SPEED-UP", p);
        if (cores <= last)
            return print_error(r, name, "%lu cores do not come after %u", cores, last);
        s.point[n].cores = last = (unsigned)cores;
        s.point[n].speedup = (float)speedup;
        p = end + strspn(end, " ");
    }
    snprintf(r->last_points, sizeof r->last_points, "%s", text);
    *graph = r->last_graph = sim_add_graph(r->work, &s);
    return true;
}

static bool find_process(struct reader *r, unsigned *process)
{
    struct sim_workload *w = r->work;
    if (!check_name(r, PROCESS) || !check_name(r, JOB))
        return false;
    grow_names(&r->procs, w, process_name);
    grow_names(&r->jobs, w, job_name);
    unsigned *job = find_name(&r->jobs, w, job_name, r->field[JOB]);
    if (!*job) {
        *job = sim_add_job(w, r->field[JOB]) + 1;
        r->jobs.used++;
    }
    unsigned *slot = find_name(&r->procs, w, process_name, r->field[PROCESS]);
    if (!*slot) {
        *slot = sim_add_process(w, r->field[PROCESS], *job - 1) + 1;
        r->procs.used++;
    }
    *process = *slot - 1;
    if (w->procs[*process].job != *job - 1)
        return print_error(r, column_names[JOB], "process %s was of job %s before",
                           r->field[PROCESS], w->jobs[w->procs[*process].job].name);
    return true;
}

static bool read_range(struct reader *r, struct sim_process *p)
{
    unsigned least, most;
    if (!read_count(r, MIN, 0, 0, &least) || !read_count(r, MAX, 0, 0, &most))
        return false;
    if (most && most < least)
        return print_error(r, column_names[MAX], "%u is less than min, %u", most, least);
    if (p->npieces && (p->min_cores != least || p->max_cores != most))
        return print_error(r, column_names[MIN], "the range of process %s was another one before",
                           p->name);
    p->min_cores = least;
    p->max_cores = most;
    return true;
}

static bool read_piece(struct reader *r, char *line)
{
    char *fields[COLUMNS + 1];
    unsigned n = split_fields(line, fields), process;
    struct sim_piece piece;
    if (n != r->ncolumns)
        return print_error(r, NULL, "%s%u fields instead of %u", n > COLUMNS ? "more than " : "",
                           n > COLUMNS ? (unsigned)COLUMNS : n, r->ncolumns);
    for (unsigned i = 0; i < n; i++)
        r->field[r->column[i]] = fields[i];
    if (!read_number(r, TIME, 0, 1e9, &piece.time) || !find_process(r, &process) ||
        !read_number(r, WORK, 0, 1e9, &piece.work) || !read_graph(r, &piece.graph) ||
        !read_count(r, REPEAT, 1, 1, &piece.repeat) ||
        !read_range(r, &r->work->procs[process]))
        return false;
    r->pieces += piece.repeat;
    if (r->pieces > SIM_PIECES)
        return print_error(r, NULL, "more than %d pieces of work", SIM_PIECES);
    sim_add_piece(r->work, process, piece);
    return true;
}

static bool read_lines(struct reader *r, FILE *file)
{
    char line[LINE_MOST];
    bool header = false;
    while (fgets(line, sizeof line, file)) {
        r->line++;
        size_t length = strcspn(line, "\r\n");
        if (!line[length] && !feof(file))
            return print_error(r, NULL, "a line has at most %d characters, and no NUL",
                               LINE_MOST - 2);
        line[length] = '\0';
        if (!length || *line == '#')
            continue;
        if (!(header ? read_piece(r, line) : read_header(r, line)))
            return false;
        header = true;
    }
    if (ferror(file))
        return print_error(r, NULL, "%s", strerror(errno));
    return r->pieces || print_error(r, NULL, "there is no piece of work");
}

bool sim_workload_read(struct sim_workload *w, FILE *file, const char *name)
{
    struct reader r = {.work = w, .file = name};
    bool good = read_lines(&r, file);
    free(r.procs.slot);
    free(r.jobs.slot);
    if (good)
        sim_workload_close(w);
    return good;
}

static void write_piece(const struct sim_workload *w, const struct sim_process *p,
                        const struct sim_piece *piece, FILE *file)
{
    const struct inv_scalability *s = &w->graphs[piece->graph].points;
    fprintf(file, "%.17g,%s,%s,%.17g,", piece->time, p->name, w->jobs[p->job].name, piece->work);
    for (unsigned k = 0; k < INV_SCALABILITY_POINTS && s->point[k].cores; k++)
        fprintf(file, "%s%u:%.9g", k ? " " : "", s->point[k].cores, (double)s->point[k].speedup);
    fprintf(file, ",%u,%u,%u\n", piece->repeat, p->min_cores, p->max_cores);
}

void sim_workload_write(const struct sim_workload *w, FILE *file)
{
    fprintf(file, "time,process,job,work,scalability,repeat,min,max\n");
    for (unsigned i = 0; i < w->nprocs; i++)
        for (unsigned k = 0; k < w->procs[i].npieces; k++)
            write_piece(w, &w->procs[i], &w->procs[i].pieces[k], file);
}
