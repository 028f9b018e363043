/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_compare.c - --compare: runs the command unmanaged and managed, in turns, and prints what
 * changed.
 *
 * A stock run has invade's own environment without variables of ours.  A managed run is a child
 * that goes on as invade without --compare does: the start and the end of its resource manager
 * count, since every managed run has them.
 *
 * Apart from that the runs are the same: standard input is a file from its beginning on, standard
 * output a temporary file, and only the last run's is passed on.  So no run is slowed down by a
 * terminal or a pipe that others do not have.
 *
 * Processes whose parent ends before them become children of invade, so that their processor time
 * counts, and the next run begins when they have ended.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/base/now.h"
#include "libinvasive/launch/preload_list.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    /* for processes that end a little after the command, as those of mpiexec on this node do */
    PATIENCE_NS = 1000000000,
    ABOVE_STANDARD = 3, /* descriptors from here on are not those that a command expects */
};

/* The runs of one kind that went well, and how long each took, in seconds. */
struct kind {
    const char *name;
    unsigned count;
    double wall[INVADE_COMPARE_MOST], cpu[INVADE_COMPARE_MOST];
};

enum { STOCK, MANAGED };

struct comparison {
    const struct invade_options *o;
    invade_become managed;
    char **stock_environment, **environment;
    off_t input;        /* where it begins; -1: it is no file */
    int output, ours;   /* the temporary file; our own output, -1: it is closed */
    bool interrupted;   /* the last run was told to end */
    bool left_behind;   /* some processes still ran a while after their command */
    bool printed;
    struct kind kinds[2];
};

/* --- what a stock run does not have of us */

static bool is_our_variable(const char *variable)
{
    static const char prefix[] = "INVASIVE";
    const char *rest = variable + strlen(prefix);
    return !strncmp(variable, prefix, strlen(prefix)) && (*rest == '=' || *rest == '_');
}

static void *or_fail(void *memory)
{
    if (memory)
        return memory;
    invade_say("--compare: no memory");
    exit(INVADE_FAILED);
}

/* "LD_PRELOAD=..." without our libraries; NULL when there are no others. */
static char *others_preload(const char *value)
{
    struct inv_preload_entry entry = {0};
    char *text = or_fail(malloc(sizeof "LD_PRELOAD=" + strlen(value) + 1));
    char *begin = stpcpy(text, "LD_PRELOAD="), *end = begin;
    while (inv_preload_next(&value, &entry)) {
        if (entry.ours)
            continue;
        if (end != begin)
            *end++ = ':';
        end = mempcpy(end, entry.text, entry.length);
    }
    *end = '\0';
    return end == begin ? NULL : text;
}

/* The environment without the variables that a surrounding invade has set, or that a user has set
 * to choose a resource manager. */
static char **stock_environment(char **all)
{
    static const char preload[] = "LD_PRELOAD=";
    size_t count = 0, kept = 0;
    while (all[count])
        count++;
    char **stock = or_fail(calloc(count + 1, sizeof *stock));
    for (size_t i = 0; i < count; i++) {
        char *variable = all[i];
        if (!strncmp(variable, preload, strlen(preload)))
            variable = others_preload(variable + strlen(preload));
        if (variable && !is_our_variable(variable))
            stock[kept++] = variable;
    }
    return stock;
}

/* --- input and output */

/* Ends invade in an MPI rank: a rank can take its place in a job only once. */
static void refuse_rank(void)
{
    static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    char job[32];
    bool many = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *size = getenv(sizes[i]);
        many = many || (size && atoi(size) > 1);
    }
    if (!many || !inv_job_name(job, sizeof job))
        return;
    invade_say("--compare cannot run one rank of a job again: write invade --compare mpiexec ...");
    exit(INVADE_FAILED);
}

static off_t beginning_of_input(void)
{
    struct stat st;
    if (!fstat(STDIN_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
        invade_say("--compare: only the first run could read standard input, which is a pipe: "
                   "write < file, or < /dev/null if the command reads nothing");
        exit(INVADE_FAILED);
    }
    return lseek(STDIN_FILENO, 0, SEEK_CUR);
}

/* Moves our standard output away, and puts a file without a name in its place. */
static void divert_output(struct comparison *c)
{
    const char *folder = getenv("TMPDIR");
    c->ours = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
    int file = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        file = memfd_create("invade-output", MFD_CLOEXEC);
    c->output = fcntl(file, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
    if (c->output < 0 || dup2(c->output, STDOUT_FILENO) < 0) {
        invade_say("--compare: no temporary file for the output: %s", strerror(errno));
        exit(INVADE_FAILED);
    }
    if (file != STDOUT_FILENO)
        close(file);
}

static bool rewind_files(const struct comparison *c)
{
    if (c->input >= 0)
        lseek(STDIN_FILENO, c->input, SEEK_SET);
    return !ftruncate(c->output, 0) && !lseek(c->output, 0, SEEK_SET);
}

/* Writes the output of the last run to standard output. */
static void pass_output_on(const struct comparison *c)
{
    char bytes[1 << 16];
    ssize_t got, sent = 0;
    off_t at = 0;
    while (c->ours >= 0 && sent >= 0 && (got = pread(c->output, bytes, sizeof bytes, at)) > 0) {
        for (ssize_t done = 0; done < got && sent >= 0; done += sent)
            sent = TEMP_FAILURE_RETRY(write(c->ours, bytes + done, (size_t)(got - done)));
        at += got;
    }
    if (sent < 0)
        invade_say("--compare: cannot write the command's output: %s", strerror(errno));
}

/* --- what came of it */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted times: the median, and the spread, which leaves out a quarter at each end. */
struct summary {
    double median, least, most;
};

static struct summary summarise(const double *sorted, unsigned n)
{
    return (struct summary){.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
                            .least = sorted[n / 4],
                            .most = sorted[n - 1 - n / 4]};
}

static bool overlap(const struct summary *a, const struct summary *b)
{
    return a->least <= b->most && b->least <= a->most;
}

static void print_kind(struct kind *k, struct summary *wall, struct summary *cpu)
{
    qsort(k->wall, k->count, sizeof *k->wall, ascending);
    qsort(k->cpu, k->count, sizeof *k->cpu, ascending);
    *wall = summarise(k->wall, k->count);
    *cpu = summarise(k->cpu, k->count);
    fprintf(stderr, "%-8s %4u %10.3f %10.3f to %-10.3f %11.3f %10.3f to %.3f\n", k->name, k->count,
            wall->median, wall->least, wall->most, cpu->median, cpu->least, cpu->most);
}

static void print_change(const struct summary wall[2], const struct summary cpu[2], bool once)
{
    bool in_time = overlap(&wall[STOCK], &wall[MANAGED]);
    bool in_cpu = overlap(&cpu[STOCK], &cpu[MANAGED]);
    fprintf(stderr, "managed took %.2f of stock's time", wall[MANAGED].median / wall[STOCK].median);
    if (cpu[STOCK].median > 0)
        fprintf(stderr, ", %.2f of its processor time", cpu[MANAGED].median / cpu[STOCK].median);
    fputc('\n', stderr);
    if (once)
        fprintf(stderr, "one run tells no spread: use --compare=3 or more\n");
    else if (in_time || in_cpu)
        fprintf(stderr, "%s within the spread, so by chance perhaps\n",
                !in_cpu   ? "the difference in time is"
                : in_time ? "both differences are"
                          : "the difference in processor time is");
}

/* Prints the comparison once: at the end, or when SIGKILL may come next. */
static void print_comparison(void *argument)
{
    struct comparison *c = argument;
    struct summary wall[2], cpu[2];
    if (c->printed)
        return;
    c->printed = true;
    if (!c->kinds[STOCK].count)
        return;
    fprintf(stderr, "invade: %s, stock and managed in turns\n", c->o->command[0]);
    fprintf(stderr, "%-8s %4s %10s %-24s %11s %s\n", "", "runs", "seconds", "    spread",
            "processor s", "    spread");
    for (int i = STOCK; i <= MANAGED; i++)
        if (c->kinds[i].count)
            print_kind(&c->kinds[i], &wall[i], &cpu[i]);
    if (c->kinds[MANAGED].count)
        print_change(wall, cpu, c->kinds[MANAGED].count == 1);
    if (c->left_behind)
        fprintf(stderr, "processes that the command has left behind ran on beside other runs: "
                        "their processor time is missing\n");
}

/* --- the runs */

static int run_one(struct comparison *c, int which)
{
    struct kind *k = &c->kinds[which];
    if (!rewind_files(c)) {
        invade_say("--compare: cannot empty the temporary file: %s", strerror(errno));
        return W_EXITCODE(INVADE_FAILED, 0);
    }
    environ = which == STOCK ? c->stock_environment : c->environment;
    double cpu = invade_cpu_of_children();
    uint64_t begin_ns = inv_now_ns();
    int status = invade_run(c->o, which == STOCK ? invade_exec : c->managed, print_comparison, c);
    double wall = 1e-9 * (double)(inv_now_ns() - begin_ns);
    c->interrupted = invade_end_signal();
    if (!invade_reap(PATIENCE_NS) && !invade_end_signal())
        c->left_behind = true;
    if (status || c->interrupted)
        return status;
    k->wall[k->count] = wall;
    k->cpu[k->count] = invade_cpu_of_children() - cpu;
    if (c->o->verbose)
        invade_say("%s: %.3f s, %.3f s of processor time", k->name, wall, k->cpu[k->count]);
    k->count++;
    return status;
}

static void say_why_it_ends(const struct comparison *c, unsigned run, int status)
{
    char how[64];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    if (c->interrupted)
        invade_say("told to end in run %u of %u (%s)", run, 2 * c->o->compare,
                   c->kinds[(run - 1) % 2].name);
    else
        invade_say("run %u of %u (%s) ended with %s: the comparison ends", run, 2 * c->o->compare,
                   c->kinds[(run - 1) % 2].name, how);
}

/* Runs all runs.  Returns the wait status of the last one, or the status by which invade must
 * end. */
static int run_all(struct comparison *c)
{
    unsigned runs = 2 * c->o->compare, run = 0;
    int status = 0;
    while (run < runs && !status && !invade_end_signal())
        status = run_one(c, run++ % 2);
    if (status || c->interrupted)
        say_why_it_ends(c, run, status);
    else if (run < runs)
        status = W_EXITCODE(0, invade_end_signal()); /* which came between two runs */
    return status;
}

void invade_compare(const struct invade_options *o, invade_become managed)
{
    struct comparison c = {.o = o};
    refuse_rank();
    c.managed = managed;
    c.environment = environ;
    c.stock_environment = stock_environment(environ);
    c.kinds[STOCK].name = "stock";
    c.kinds[MANAGED].name = "managed";
    c.input = beginning_of_input();
    divert_output(&c);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int status = run_all(&c);
    invade_give_signals_back(); /* the reader of our output may be slow */
    pass_output_on(&c);
    print_comparison(&c);
    invade_end_as(status);
}
