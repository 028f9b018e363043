/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_simulate.c - `rmctl simulate`: options, and one schedule after the other; see simulate.h. */
#define _GNU_SOURCE
#include "tools/rmctl/simulate/simulate.h"
#include "tools/rmctl/rmctl.h"
#include "tools/rmctl/simulate/simulate_print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_MOVE = 256, OPT_LEND, OPT_DECISION, OPT_WITHIN, OPT_LOSS, OPT_WRITE, OPT_SERIES };

static const struct argp_option simulate_options[] = {
    {"machine", 'm', "M", 0,
     "number of cores, also with speeds such as 4x1.0,4x0.6, or hwloc's words such as "
     "\"package:2 numa:4 core:16\"; default: 64", 0},
    {"workload", 'w', "FILE", 0, "read the workload from FILE (-: standard input)", 0},
    {"generate", 'g', "KIND[,NAME=X...]", 0,
     "generate the workload: constant, changing, study, bursty or crowd, "
     "with seed, processes, ranks, pieces, seconds, apart, serial", 0},
    {"schedules", 's', "LIST", 0, "static, sequence, lending and policies; default: all", 0},
    {"announce", 'a', "WHEN", 0,
     "processes announce work when it has been measured (default), or ahead", 0},
    {"move-cost-us", OPT_MOVE, "US", 0, "core time lost when a core moves; default 1000", 0},
    {"lend-cost-us", OPT_LEND, "US", 0, "the same when it is lent or reclaimed; default 60", 0},
    {"decision-us", OPT_DECISION, "US", 0,
     "time from a change to new owners; default by the size of the workload", 0},
    {"pay-within-ms", OPT_WITHIN, "MS", 0, "as rmd's option; default 100", 0},
    {"energy-loss", OPT_LOSS, "PERCENT", 0, "as rmd's option; default 5", 0},
    {"decisions", 'd', NULL, 0, "print each decision", 0},
    {"picture", 'p', "FILE", 0, "draw cores over time (.png, .svg or .pdf)", 0},
    {"series", OPT_SERIES, "FILE", 0, "write what the picture shows as JSON", 0},
    {"write", OPT_WRITE, "FILE", 0, "write the workload", 0},
    {0}};

struct settings {
    const char *machine, *workload, *generate, *schedules, *picture, *series, *write;
    bool decisions;
    struct sim_costs costs; /* decision_s < 0: by size */
};

static double parse_number(const char *text, double least, double most, struct argp_state *state,
                           const char *option)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= least && x <= most))
        argp_error(state, "--%s: '%s' is not a number from %g to %g", option, text, least, most);
    return x;
}

static void set_announce(struct settings *s, const char *when, struct argp_state *state)
{
    s->costs.ahead = !strcmp(when, "ahead");
    if (!s->costs.ahead && strcmp(when, "measured") != 0)
        argp_error(state, "--announce: '%s' is not measured or ahead", when);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct settings *s = state->input;
    switch (key) {
    case 'm': s->machine = arg; return 0;
    case 'w': s->workload = arg; return 0;
    case 'g': s->generate = arg; return 0;
    case 's': s->schedules = arg; return 0;
    case 'a': set_announce(s, arg, state); return 0;
    case 'd': s->decisions = true; return 0;
    case 'p': s->picture = arg; return 0;
    case OPT_SERIES: s->series = arg; return 0;
    case OPT_WRITE: s->write = arg; return 0;
    case OPT_MOVE:
        s->costs.move_s = parse_number(arg, 0, 1e9, state, "move-cost-us") * 1e-6;
        return 0;
    case OPT_LEND:
        s->costs.lend_s = parse_number(arg, 0, 1e9, state, "lend-cost-us") * 1e-6;
        return 0;
    case OPT_DECISION:
        s->costs.decision_s = parse_number(arg, 0, 1e9, state, "decision-us") * 1e-6;
        return 0;
    case OPT_WITHIN:
        s->costs.tuning.within_s = parse_number(arg, 0, 1e9, state, "pay-within-ms") * 1e-3;
        return 0;
    case OPT_LOSS:
        s->costs.tuning.energy_loss = parse_number(arg, 0, 99, state, "energy-loss") * 1e-2;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "what is '%s'? A workload is named by --workload=FILE", arg);
        return 0;
    case ARGP_KEY_END:
        if (!s->workload == !s->generate)
            argp_error(state, "one of --workload=FILE and --generate=KIND is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool print_error(const char *what, const char *why)
{
    fprintf(stderr, "rmctl simulate: %s: %s\n", what, why);
    return false;
}

/* --- what is simulated */

static bool load_workload(struct sim_workload *w, const struct settings *s, unsigned ncores)
{
    char why[200];
    if (s->generate)
        return sim_workload_generate(w, s->generate, ncores, why) || print_error("--generate", why);
    bool standard = !strcmp(s->workload, "-");
    FILE *f = standard ? stdin : fopen(s->workload, "re");
    if (!f)
        return print_error(s->workload, strerror(errno));
    bool good = sim_workload_read(w, f, standard ? "standard input" : s->workload);
    if (!standard)
        fclose(f);
    return good;
}

static bool write_workload(const struct sim_workload *w, const char *path)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return print_error(path, strerror(errno));
    sim_workload_write(w, f);
    bool good = !ferror(f);
    return (fclose(f) == 0 && good) || print_error(path, strerror(errno));
}

/* --- schedules */

static const struct {
    const char *name, *about;
} plain[] = {{"static", "equal cores for every process, for good"},
             {"sequence", "one job after the other, each on all cores"},
             {"lending", "as static, and processes that wait lend"}};
enum { STATIC, SEQUENCE, LENDING, PLAIN, MOST = 32 };

/* Which: the plain ones, then the policies. */
static const char *name_of(unsigned which)
{
    return which < PLAIN ? plain[which].name : rmd_policies[which - PLAIN].name;
}

/* Their numbers, in the order of the list; 0 when there is one that is none. */
static unsigned choose_schedules(const char *list, unsigned which[MOST])
{
    unsigned n = 0;
    if (!list || !strcmp(list, "all")) {
        for (; n < MOST && (n < PLAIN || rmd_policies[n - PLAIN].name); n++)
            which[n] = n;
        return n;
    }
    for (const char *at = list; at && n < MOST; n++) {
        size_t length = strcspn(at, ",");
        unsigned k = 0;
        while ((k < PLAIN || name_of(k)) &&
               (strlen(name_of(k)) != length || strncmp(name_of(k), at, length) != 0))
            k++;
        if (k >= PLAIN && !name_of(k)) {
            fprintf(stderr, "rmctl simulate: '%.*s' is no schedule: use static, sequence, "
                            "lending, %s\n", (int)length, at, rmd_policy_names().text);
            return 0;
        }
        which[n] = k;
        at = at[length] ? at + length + 1 : NULL;
    }
    return n;
}

static struct sim_result run_schedule(const struct sim_world *w, unsigned which, double bin_s)
{
    struct sim_result r = {.name = name_of(which),
                           .about = which < PLAIN ? plain[which].about
                                                  : rmd_policies[which - PLAIN].about};
    r.job_end = sim_allocate(w->work->njobs, sizeof *r.job_end);
    if (bin_s > 0) {
        r.series = sim_allocate(1, sizeof *r.series);
        r.series->bin_s = bin_s;
    }
    if (which == STATIC)
        sim_run_static(w, &r);
    else if (which == SEQUENCE)
        sim_run_sequence(w, &r);
    else
        sim_run_managed(w, which == LENDING ? NULL : &rmd_policies[which - PLAIN], &r);
    if (!rmctl_common.json)
        sim_print_decisions(&r, stdout);
    return r;
}

/* --- bands of the picture: the jobs with most work, or the processes of the only job; the last
 * band has all others */

struct weight {
    double work;
    unsigned which;
};

static int compare_heaviest_first(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return x->which < y->which ? -1 : x->which > y->which;
}

static void choose_bands(const struct sim_workload *w, unsigned *band, struct sim_bands *bands)
{
    bool by_job = w->njobs > 1;
    unsigned n = by_job ? w->njobs : w->nprocs;
    struct weight *weight = sim_allocate(n, sizeof *weight);
    unsigned *band_of = sim_allocate(n, sizeof *band_of);
    for (unsigned k = 0; k < n; k++)
        weight[k].which = k;
    for (unsigned i = 0; i < w->nprocs; i++)
        for (unsigned k = 0; k < w->procs[i].npieces; k++)
            weight[by_job ? w->procs[i].job : i].work +=
                w->procs[i].pieces[k].work * w->procs[i].pieces[k].repeat;
    qsort(weight, n, sizeof *weight, compare_heaviest_first);
    bands->count = n < SIM_BANDS ? n : SIM_BANDS;
    for (unsigned k = 0; k < n; k++) {
        unsigned which = weight[k].which, b = k < bands->count ? k : bands->count - 1;
        band_of[which] = b;
        if (b == k)
            bands->name[b] = n > SIM_BANDS && b == SIM_BANDS - 1 ? "others"
                             : by_job                            ? w->jobs[which].name
                                                                 : w->procs[which].name;
    }
    for (unsigned i = 0; i < w->nprocs; i++)
        band[i] = band_of[by_job ? w->procs[i].job : i];
    free(weight);
    free(band_of);
}

/* --- all of it */

/* Somewhat more than bench/run decide has measured for the slowest policy, on virtual machines. */
static double decision_time(const struct sim_workload *w, unsigned ncores)
{
    return 0.5e-6 * w->nprocs + 0.12e-6 * ncores;
}

static bool run_schedules(const struct settings *s, struct sim_world *world,
                          struct sim_workload *work)
{
    unsigned which[MOST], n = choose_schedules(s->schedules, which);
    if (!n)
        return false;
    struct sim_bands bands;
    unsigned *band = sim_allocate(work->nprocs, sizeof *band);
    choose_bands(work, band, &bands);
    world->work = work;
    world->band = band;
    if (world->costs.decision_s < 0)
        world->costs.decision_s = decision_time(work, world->machine.ncores);
    struct sim_bound bound = sim_bound_of(world);
    struct sim_result result[MOST];
    double bin_s = s->picture || s->series ? fmax(bound.total_s / SIM_BINS, 1e-9) : 0;
    for (unsigned k = 0; k < n; k++)
        result[k] = run_schedule(world, which[k], bin_s);
    const struct sim_report report = {world, s->machine, &bound, result, n, &bands};
    if (rmctl_common.json)
        sim_print_json(&report, stdout);
    else
        sim_print_table(&report, stdout);
    bool good = (!s->series || sim_write_series(&report, s->series)) &&
                (!s->picture || sim_draw(&report, s->picture));
    for (unsigned k = 0; k < n; k++) {
        free(result[k].job_end);
        free(result[k].decision);
        free(result[k].series);
    }
    free(bound.job_end);
    free(band);
    return good;
}

static int run_simulate(int argc, char **argv)
{
    struct settings s = {.machine = "64",
                         .costs = {.move_s = 1e-3, .lend_s = 60e-6, .decision_s = -1,
                                   .tuning = RMD_TUNING}};
    char why[200];
    rmctl_parse(argc, argv, simulate_options, parse_option, "",
                "What policies would do on a machine that is only described.", &s);
    s.costs.tuning.move_cost_s = s.costs.move_s;
    struct sim_world world = {.costs = s.costs, .decisions = s.decisions};
    if (!sim_machine_parse(s.machine, &world.machine, why))
        return print_error("--machine", why) || 1;
    unsigned short *speed = sim_machine_speeds(s.machine, world.machine.ncores);
    world.speed = speed;
    struct sim_workload work = {0};
    bool good = load_workload(&work, &s, world.machine.ncores) &&
                (!s.write || write_workload(&work, s.write)) && run_schedules(&s, &world, &work);
    sim_workload_free(&work);
    free((void *)world.machine.apart);
    free(speed);
    return good ? 0 : 1;
}

const struct rmctl_command rmctl_simulate_command = {
    "simulate", "policies and placement on a described machine", run_simulate, simulate_options};
