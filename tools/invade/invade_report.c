/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_report.c - --report: the file of the report, and the processes that it is about.
 *
 * FILE.json is written as a whole when the command has ended; invade checks before the command
 * starts, as far as possible, whether it can be.  All other reports are text, to a file that is
 * opened at the start.  Standard output is the command's, too, which has written all of its output
 * by then.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "invade_model.h"
#include "libinvasive/base/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_in_json(const char *file)
{
    size_t length = strlen(file);
    return length > 5 && !strcmp(file + length - 5, ".json");
}

static bool is_stdout(const char *file)
{
    return !strcmp(file, INVADE_STDOUT) || !strcmp(file, INVADE_STDOUT_JSON);
}

static void cannot_write(const char *file)
{
    invade_say("cannot write the report to %s: %s", is_stdout(file) ? "standard output" : file,
               strerror(errno));
}

/* Will it be possible to write a new file beside this one, and to replace this one by it? */
static bool can_replace(const char *file)
{
    struct stat st;
    char *directory = strdup(file);
    char *slash = directory ? strrchr(directory, '/') : NULL;
    if (!directory)
        return false;
    if (slash)
        slash[slash == directory] = '\0';
    bool good = !access(slash ? directory : ".", W_OK | X_OK);
    free(directory);
    if (good && !stat(file, &st) && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        good = false;
    }
    return good;
}

/* Never 0.  The same in the invades that the ranks of one job have on one node. */
static uint64_t launch_number(void)
{
    char job[32];
    uint64_t number;
    if (inv_job_name(job, sizeof job))
        return strtoull(job, NULL, 16) | 1;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)time(NULL) << 32 | (uint64_t)getpid();
    return number | 1;
}

bool invade_report_open(struct invade_report *r, const struct invade_options *o)
{
    *r = (struct invade_report){.file = o->report_file, .since_ns = inv_now_ns()};
    const char *outer = getenv("INVASIVE_REPORT");
    bool outers = !o->report && o->trace_file && outer && *outer; /* its report, our trace */
    r->wanted = o->report || o->learn || (o->trace_file && !outers);
    r->launch = outers ? strtoull(outer, NULL, 16) : r->wanted ? launch_number() : 0;
    r->ours = o->report && invade_rank() == 0;
    if (!r->ours)
        return true;
    if (!r->file) {
        r->text = stderr;
        return true;
    }
    r->json = ends_in_json(r->file);
    if (!r->json)
        r->text = is_stdout(r->file) ? stdout : fopen(r->file, "we");
    if (r->json ? is_stdout(r->file) || can_replace(r->file) : r->text != NULL)
        return true;
    cannot_write(r->file);
    return false;
}

static void close_text(struct invade_report *r)
{
    if (r->text && r->text != stderr && (r->text == stdout ? fflush : fclose)(r->text))
        cannot_write(r->file);
    r->text = NULL;
}

/* In a regular file, the report of a command that still ran is replaced by the next one. */
static void begin_text(struct invade_report *r, char **command, int status)
{
    struct stat st;
    if (r->begun && r->text != stderr && r->text != stdout && !fstat(fileno(r->text), &st) &&
        S_ISREG(st.st_mode)) {
        rewind(r->text);
        if (ftruncate(fileno(r->text), 0))
            cannot_write(r->file);
    }
    r->begun = true;
    if (status == INVADE_STILL_RUNS)
        fprintf(r->text, "invade: %s still runs after SIGTERM; until now:\n", command[0]);
}

static void end_text(struct invade_report *r, int status)
{
    if (status != INVADE_STILL_RUNS)
        close_text(r);
    else if (r->text && fflush(r->text))
        cannot_write(r->file);
}

void invade_report_unmanaged(struct invade_report *r, char **command)
{
    if (r->text)
        fprintf(r->text, "invade: unmanaged, so there is nothing to report\n");
    close_text(r);
    if (r->json && !launch_write_json(r->file, NULL, command))
        cannot_write(r->file);
}

/* Keeps only the reports of this launch's processes.  The rmd may have others, also of processes
 * that a rank has run before under another invade. */
static unsigned only_ours(const struct invade_report *ours, struct rmd_client_report *all,
                          unsigned count)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        struct inv_record *r = all[i].record;
        uint64_t end = all[i].report.end_ns;
        if (r && (!end || end > ours->since_ns) &&
            atomic_load_explicit(&r->launch, memory_order_relaxed) == ours->launch) /* our copy */
            all[kept++] = all[i];
        else
            free(r);
    }
    return kept;
}

static void fill_others(struct launch *l, const struct invade_report *r,
                        const struct invade_manager *m)
{
    struct invade_load after = invade_load_now(m);
    bool all_ended = true;
    double cpu = 0;
    for (unsigned i = 0; l->processes && i < l->count; i++) {
        all_ended = all_ended && !l->processes[i].counters->alive;
        cpu += l->processes[i].cpu > 0 ? l->processes[i].cpu : 0;
    }
    l->capacity = 1e-9 * (double)(after.now_ns - r->before.now_ns) * l->ncores;
    l->others = all_ended && l->nnodes <= 1 && l->ncores == m->ncores
                    ? invade_load_of_others(&r->before, &after, l->ncores, cpu)
                    : -1;
}

static void add_to_trace(struct rmd_trace_file *trace, struct launch *l, char **command)
{
    char *json = launch_json_text(l, command);
    if (json)
        invade_trace_add_report(trace, json);
    else
        invade_say("the trace has no report: no memory");
    free(json);
}

/* The number of the domain's cores.  A private rmd has fewer than at its start if another resource
 * manager has bound the processes to some of them. */
static unsigned count_cores(const struct invade_manager *m)
{
    unsigned cores = m->pid && !m->emulated ? rmd_client_cores(m->socket) : 0;
    return cores && cores < m->ncores ? cores : m->ncores;
}

bool invade_report_fetch(const struct invade_report *r, const struct invade_manager *m, struct launch *l, int *error)
{
    unsigned count;
    struct rmd_client_report *all = rmd_client_reports(m->socket, &count, error);
    if (!m->pid)
        count = only_ours(r, all, count);
    if (count && launch_fill(l, all, count))
        return true;
    if (count) {
        invade_say("cannot read what the processes have reported: no memory");
        launch_free(l);
    } else
        rmd_client_reports_free(all, 0);
    return false;
}

void invade_report_write(struct invade_report *r, const struct invade_manager *m, char **command,
                         int status)
{
    int error;
    struct launch l = {
        .command = command, .status = status, .ncores = count_cores(m), .emulated = m->emulated,
        .beside = !m->pid && !m->of_job};
    bool some = invade_report_fetch(r, m, &l, &error);
    fill_others(&l, r, m);
    if (r->text)
        begin_text(r, command, status);
    if (r->text && some)
        launch_print(r->text, &l);
    else if (r->text)
        fprintf(r->text, "invade: %s: %s\n", command[0],
                error ? "rmd is gone, and what it knew with it"
                      : "no process used MPI or GCC's OpenMP runtime (libgomp) under invade on this "
                        "node: nothing to report; LLVM's and Intel's runtimes are left alone");
    end_text(r, status);
    if (r->traced && status != INVADE_STILL_RUNS)
        add_to_trace(r->traced, &l, command);
    bool two = status == INVADE_STILL_RUNS && r->json && is_stdout(r->file); /* no JSON is */
    if (r->json && !two && !launch_write_json(r->file, &l, command))
        cannot_write(r->file);
    launch_free(&l);
}
