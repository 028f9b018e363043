/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_model.c - from the counters and records of processes to jobs and their metrics.  The
 * formulae are in invade(1), REPORT.
 *
 * Counters and records come from memory to which the processes may write anything.  Only pid,
 * program, times of joining and ending, and owned cores are rmd's own.  So every
 * number is bounded by what is possible, and every name made printable.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "invade_bounds.h"
#include "invade_model.h"
#include "libinvasive/base/now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MOST = 1 << 16 };

/* --- call sites */

static int by_waiting(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    if (x->waited != y->waited)
        return x->waited > y->waited ? -1 : 1;
    return x->calls > y->calls ? -1 : x->calls < y->calls;
}

static struct site site_from(const struct inv_site *s, double tick, double life)
{
    struct site to = {.calls = load_number(&s->calls), .slept = load_number(&s->slept), .processes = 1};
    struct place *place = &to.place;
    snprintf(to.function, sizeof to.function, "MPI_");
    copy_printable(to.function + 4, sizeof to.function - 4, s->function, sizeof s->function);
    copy_printable(place->symbol, sizeof place->symbol, s->symbol, sizeof s->symbol);
    copy_printable(place->module, sizeof place->module, s->module, sizeof s->module);
    memcpy(place->file, s->module, sizeof place->file);
    place->file[sizeof place->file - 1] = '\0';
    place->offset = s->offset;
    to.waited = smaller_of((double)load_number(&s->waited_ticks) * tick, life * THREADS_MOST);
    to.longest = smaller_of((double)load_number(&s->longest_ticks) * tick, life);
    return to;
}

/* Fills the call sites.  asleep: seconds for which the main thread had slept in a wait when the
 * process ended; that wait has not been counted. */
static bool fill_sites(struct process *p, double life, double asleep)
{
    uint32_t in = load_number32(&p->record->waiting_site);
    uint64_t per_ms = load_number(&p->record->ticks_per_ms);
    double tick = per_ms ? 1e-3 / (double)per_ms : 0;
    p->sites.at = p->room ? calloc(p->room, sizeof *p->sites.at) : NULL;
    if (p->room && !p->sites.at)
        return false;
    for (unsigned i = 0; i < p->room; i++) {
        const struct inv_site *s = &p->record->site[i];
        struct site *to = &p->sites.at[p->sites.count];
        if (i > 0 && !load_number32(&s->named))
            continue;
        *to = site_from(s, tick, life);
        if (i == in) {
            to->waited += asleep;
            to->longest = larger_of(to->longest, asleep);
        }
        if (i == 0) { /* all sites for which there was no room */
            to->place.other = true;
            snprintf(to->function, sizeof to->function, "other");
        }
        p->sites.count += to->waited > 0 || to->calls > 0;
    }
    if (p->sites.count)
        qsort(p->sites.at, p->sites.count, sizeof *p->sites.at, by_waiting);
    return true;
}

static bool same_site(const struct site *a, const struct site *b)
{
    return a->place.other == b->place.other && a->place.offset == b->place.offset &&
           !strcmp(a->function, b->function) && !strcmp(a->place.file, b->place.file);
}

static void merge_site(struct sites *all, const struct site *s)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct site *to = &all->at[i];
        if (!same_site(to, s))
            continue;
        to->calls += s->calls;
        to->slept += s->slept;
        to->waited += s->waited;
        to->longest = larger_of(to->longest, s->longest);
        to->processes++;
        return;
    }
    all->at[all->count++] = *s;
}

static bool merge_sites(struct job *j)
{
    unsigned room = 0;
    for (unsigned i = 0; i < j->count; i++)
        room += j->at[i].sites.count;
    j->sites.at = room ? calloc(room, sizeof *j->sites.at) : NULL;
    if (room && !j->sites.at)
        return false;
    for (unsigned i = 0; i < j->count; i++)
        for (unsigned s = 0; s < j->at[i].sites.count; s++)
            merge_site(&j->sites, &j->at[i].sites.at[s]);
    if (j->sites.count)
        qsort(j->sites.at, j->sites.count, sizeof *j->sites.at, by_waiting);
    return true;
}

/* --- processes */

static void fill_classes(struct process *p, double life)
{
    const struct inv_record *r = p->record;
    uint32_t count = load_number32(&r->classes);
    for (unsigned i = 0; i < count && i < INV_CLASSES; i++) {
        const struct inv_class *c = &r->class[i];
        if (!load_number(&c->count))
            continue;
        /* The shim's clock and ours differ by some millionths. */
        double length = smaller_of(ns_to_seconds(load_number(&c->length_ns)), life);
        double useful = smaller_of(ns_to_seconds(load_number(&c->useful_ns)), length);
        p->class[p->classes++] = (struct class){
            .sites = load_number(&c->sites),
            .count = load_number(&c->count),
            .length = length,
            .useful = useful,
            .waiting = smaller_of(ns_to_seconds(load_number(&c->wait_ns)), length - useful),
            .core = smaller_of(ns_to_seconds(load_number(&c->core_ns)), life * INV_MAX_CORES),
            .most_useful = useful,
        };
    }
}

static const char *end_of(const struct inv_report *c, const struct inv_record *r)
{
    if (c->left)
        return "unmanaged";
    if (c->alive)
        return r && load_number(&r->job) && load_number(&r->until_ns) ? "finalized" : "running";
    if (!r)
        return "unknown";
    return load_number32(&r->exited) ? "exited"
                                                                                      : "killed";
}

/* The times of the main thread.  If the process was killed, the time after its last count was
 * useful until the thread fell asleep, and waiting from then on.  Returns the seconds of that last
 * sleep. */
static double fill_times(struct process *p, uint64_t from, uint64_t until)
{
    const struct inv_report *c = p->counters;
    double length = ns_to_seconds(until - from);
    if (c->useful_ns + c->wait_ns == 0 && !(p->record && load_number(&p->record->job))) {
        p->useful = length; /* its waits are not measured: it has no MPI */
        return 0;
    }
    p->useful = smaller_of(ns_to_seconds(c->useful_ns), length);
    p->waiting = smaller_of(ns_to_seconds(c->wait_ns), length - p->useful);
    if (!p->record)
        return 0;
    uint64_t counted = limit_number(load_number(&p->record->counted_ns), from, until);
    uint64_t asleep = load_number(&p->record->waiting_since_ns);
    asleep = limit_number(asleep ? asleep : until, counted, until);
    p->useful = smaller_of(p->useful + ns_to_seconds(asleep - counted), length);
    p->waiting = smaller_of(p->waiting + ns_to_seconds(until - asleep), length - p->useful);
    return ns_to_seconds(until - asleep);
}

/* Useful core time: CPU time outside waits; if that is unknown, the time for which cores were
 * held. */
static void fill_core(struct process *p, const struct launch *l, uint64_t until)
{
    const struct inv_report *c = p->counters;
    unsigned cores = l->nodes[p->node].cores;
    double life = p->useful + p->waiting;
    double busy = life > 0 ? p->useful / life : 0;
    p->cpu = -1;
    p->core = c->owned_ns ? p->owned * busy + smaller_of(ns_to_seconds(c->borrowed_ns), life * cores)
                          : p->useful;
    if (!p->record || l->emulated || !load_number(&p->record->cpu_ns))
        return;
    uint64_t start = load_number(&p->record->cpu_start_ns), now = load_number(&p->record->cpu_ns);
    uint64_t known = limit_number(load_number(&p->record->published_ns), c->start_ns, until);
    p->cpu = now > start ? smaller_of(ns_to_seconds(now - start), life * THREADS_MOST) : 0;
    double spun = ns_to_seconds(load_number(&p->record->spun_ns));
    p->core = larger_of(0, p->cpu - spun);
    uint64_t asleep = load_number(&p->record->waiting_since_ns);
    if (!asleep) /* it was computing when it ended: at least one core's time is missing */
        p->core += ns_to_seconds(until - known);
    p->core = smaller_of(p->core, life * cores);
}

static bool fill_process(struct process *p, const struct launch *l, uint64_t first)
{
    const struct inv_report *c = p->counters;
    uint64_t end = c->end_ns ? c->end_ns : inv_now_ns(), from = c->start_ns, until = end;
    if (p->record && load_number(&p->record->from_ns))
        from = limit_number(load_number(&p->record->from_ns), from, end);
    if (p->record && load_number(&p->record->until_ns))
        until = limit_number(load_number(&p->record->until_ns), from, end);
    p->job = p->record ? load_number(&p->record->job) : 0;
    p->end = end_of(c, p->record);
    p->energy = c->energy == INV_ENERGY_COUNTED ? 1e-6 * (double)c->energy_uj : NAN;
    p->from = ns_to_seconds(from - first);
    p->until = ns_to_seconds(until - first);
    p->owned = end > c->start_ns ? ns_to_seconds(c->owned_ns) * (double)(until - from) /
                                       (double)(end - c->start_ns)
                                 : 0;
    double asleep = fill_times(p, from, until);
    fill_core(p, l, until);
    if (!p->record)
        return true;
    fill_classes(p, ns_to_seconds(until - from));
    return fill_sites(p, ns_to_seconds(until - from), asleep) &&
           regions_fill(p, l->nodes[p->node].cores) && controls_fill(p);
}

/* --- nodes */

static unsigned node_of(struct launch *l, const struct inv_report *r)
{
    for (unsigned i = 0; i < l->nnodes; i++)
        if (l->nodes[i].number == r->node)
            return i;
    struct node *n = &l->nodes[l->nnodes];
    n->number = r->node;
    n->cores = (unsigned)limit_number(r->node_cores, 1, INV_MAX_CORES);
    copy_printable(n->name, sizeof n->name, r->host, sizeof r->host);
    l->ncores += n->cores;
    return l->nnodes++;
}

/* Begins the list of nodes with this node. */
static bool begin_nodes(struct launch *l, unsigned count)
{
    char name[INV_HOST_BYTES] = "";
    l->nodes = calloc(count + 1, sizeof *l->nodes);
    if (!l->nodes)
        return false;
    if (gethostname(name, sizeof name - 1))
        name[0] = '\0';
    copy_printable(l->nodes[0].name, sizeof l->nodes[0].name, name, sizeof name);
    l->nodes[0].cores = l->ncores;
    l->nnodes = 1;
    return true;
}

/* The cores that a job had.  Beside other jobs and launches: the cores that it owned on each node,
 * if cores have owners there. */
static double cores_of(const struct job *j, const struct launch *l)
{
    double all = 0, elapsed = j->until - j->from;
    for (unsigned n = 0; n < l->nnodes; n++) {
        double owned = 0;
        bool there = false;
        for (unsigned i = 0; i < j->count; i++)
            if (j->at[i].node == n) {
                there = true;
                owned += j->at[i].owned;
            }
        double cores = there ? l->nodes[n].cores : 0;
        bool shares = l->njobs > 1 || l->beside;
        all += shares && owned > 0 && elapsed > 0 ? smaller_of(cores, owned / elapsed) : cores;
    }
    return all;
}

/* --- jobs */

/* core: useful core time of all on `cores` cores; most_useful: the longest useful time of a
 * rank's main thread.  Some core was useful for at least as long as that, and as the mean. */
static struct metrics metrics_of(double core, double cores, double most_useful, double elapsed)
{
    double mean = cores > 0 ? smaller_of(core / cores, elapsed) : 0;
    double longest = larger_of(mean, smaller_of(most_useful, elapsed));
    struct metrics m = {.parallel_efficiency = share_of(mean, elapsed),
                        .communication_efficiency = share_of(longest, elapsed),
                        .load_balance = share_of(mean, longest),
                        .work_balance = 1};
    m.gain = 1 - m.parallel_efficiency;
    return m;
}

static void fill_ranks(struct job *j, double most_core)
{
    double elapsed = j->until - j->from;
    for (unsigned i = 0; i < j->count; i++) {
        struct process *p = &j->at[i];
        double part = j->cores / j->count; /* an equal share */
        p->metrics.parallel_efficiency = part > 0 && elapsed > 0 ? p->core / part / elapsed : 0;
        p->metrics.load_balance = share_of(p->core, most_core);
        p->metrics.communication_efficiency = share_of(p->useful, elapsed);
        for (unsigned c = 0; c < p->classes; c++) {
            struct class *k = &p->class[c];
            k->metrics.parallel_efficiency =
                part > 0 && k->length > 0 ? k->core / part / k->length : 0;
            k->metrics.communication_efficiency = share_of(k->useful, k->length);
        }
    }
}

static struct class *class_of(struct job *j, uint64_t sites)
{
    for (unsigned i = 0; i < j->classes; i++)
        if (j->class[i].sites == sites)
            return &j->class[i];
    if (j->classes == INV_CLASSES)
        return NULL;
    struct class *c = &j->class[j->classes++];
    *c = (struct class){.sites = sites};
    return c;
}

static int by_length(const void *a, const void *b)
{
    const struct class *x = a, *y = b;
    return x->length > y->length ? -1 : x->length < y->length;
}

static void merge_classes(struct job *j)
{
    double most_core[INV_CLASSES] = {0};
    for (unsigned i = 0; i < j->count; i++)
        for (unsigned k = 0; k < j->at[i].classes; k++) {
            const struct class *from = &j->at[i].class[k];
            struct class *to = class_of(j, from->sites);
            if (!to)
                continue;
            to->count = from->count > to->count ? from->count : to->count;
            to->length = larger_of(to->length, from->length);
            to->useful += from->useful;
            to->waiting += from->waiting;
            to->core += from->core;
            to->most_useful = larger_of(to->most_useful, from->useful);
            most_core[to - j->class] = larger_of(most_core[to - j->class], from->core);
        }
    for (unsigned k = 0; k < j->classes; k++) {
        struct class *c = &j->class[k];
        c->metrics = metrics_of(c->core, j->cores, c->most_useful, c->length);
        c->metrics.work_balance = share_of(c->core / j->count, most_core[k]);
        for (unsigned i = 0; i < j->count; i++)
            for (unsigned n = 0; n < j->at[i].classes; n++)
                if (j->at[i].class[n].sites == c->sites)
                    j->at[i].class[n].metrics.load_balance =
                        share_of(j->at[i].class[n].core, most_core[k]);
    }
    qsort(j->class, j->classes, sizeof *j->class, by_length);
}

static unsigned missing_ranks(const struct job *j)
{
    unsigned known = 0;
    for (unsigned i = 0; i < j->count; i++)
        known += i == 0 || j->at[i].counters->rank != j->at[i - 1].counters->rank;
    return j->size > (int)known ? (unsigned)j->size - known : 0;
}

/* Number of ranks that the launcher has started, if MPI does not know of them; 0: it does. */
static unsigned launched_ranks(const struct job *j)
{
    const struct inv_record *r = j->at[0].record;
    uint32_t n = r ? load_number32(&r->launched)
                   : 0;
    return j->size == 1 && n > 1 && n <= INT32_MAX ? n : 0;
}

static bool fill_job(struct job *j, const struct launch *l)
{
    double most_useful = 0, most_core = 0;
    j->size = j->at[0].counters->rank >= 0 ? j->at[0].counters->size : 0;
    j->missing = missing_ranks(j);
    j->launched = launched_ranks(j);
    j->from = j->at[0].from;
    for (unsigned i = 0; i < j->count; i++) {
        struct process *p = &j->at[i];
        j->from = smaller_of(j->from, p->from);
        j->until = larger_of(j->until, p->until);
        j->useful_core += p->core;
        j->energy += p->energy;
        most_useful = larger_of(most_useful, p->useful);
        most_core = larger_of(most_core, p->core);
    }
    double elapsed = j->until - j->from;
    j->cores = cores_of(j, l);
    j->metrics = metrics_of(j->useful_core, j->cores, most_useful, elapsed);
    j->metrics.work_balance = share_of(j->useful_core / j->count, most_core);
    merge_classes(j);
    fill_ranks(j, most_core);
    regions_small_teams(j, l);
    return merge_sites(j) && regions_merge(j);
}

/* --- had no core moved (mpi-shim/measure/estimate.c) */

static const double most_of = 0.9, half = 0.5; /* of the time */

static bool is_beside_another(const struct job *j, const struct launch *l)
{
    bool beside = l->beside;
    for (unsigned i = 0; i < l->njobs; i++) {
        const struct job *other = &l->jobs[i];
        beside = beside || (other != j && other->from < j->until && other->until > j->from);
    }
    return beside;
}

/* Have iterations been recognised? */
static bool has_iterations(const struct job *j)
{
    double all = 0, windows = 0;
    for (unsigned i = 0; i < j->classes; i++) {
        all += j->class[i].length;
        windows += j->class[i].sites ? 0 : j->class[i].length;
    }
    return windows <= half * all;
}

/* The part of the core time held outside waits for which the job computed.  Other programs had the
 * rest. */
static double busy_part(const struct job *j)
{
    double busy = 0, held = 0;
    for (unsigned i = 0; i < j->count; i++) {
        const struct process *p = &j->at[i];
        if (p->cpu < 0)
            return 1;
        busy += p->core;
        for (unsigned k = 0; k < p->classes; k++)
            held += p->class[k].core;
    }
    return larger_of(most_of, share_of(busy, held));
}

/* The first rank on each node has summed up how slow the slowest of its node's ranks would have
 * been; with more ranks than cores that is CPU time already. */
static void fill_unmoved(struct job *j, const struct launch *l)
{
    double elapsed = j->until - j->from, longer = 0;
    double part = j->count > l->ncores ? 1 : busy_part(j);
    bool known = false;
    j->unmoved = NAN;
    if (j->size < 2 || j->missing || is_beside_another(j, l))
        return;
    j->unmoved_least = l->nnodes > 1 || !has_iterations(j);
    for (unsigned i = 0; i < j->count; i++) {
        const struct inv_record *r = j->at[i].record;
        double judged = r ? smaller_of(ns_to_seconds(load_number(&r->judged_ns)), elapsed) : 0;
        if (judged <= 0)
            continue;
        double unmoved = smaller_of(ns_to_seconds(load_number(&r->slowest_unmoved_ns)), elapsed * INV_MAX_CORES);
        double more = larger_of(part * unmoved - ns_to_seconds(load_number(&r->slowest_ns)), 0);
        known = true;
        if (judged < most_of * elapsed)
            j->unmoved_least = true;
        else
            more *= elapsed / judged;
        longer = larger_of(longer, more);
    }
    if (known)
        j->unmoved = elapsed + longer;
}

/* Ranks of one MPI_COMM_WORLD are one job; every other process is one by itself. */
static bool same_job(const struct process *a, const struct process *b)
{
    if (a->counters->rank < 0 || b->counters->rank < 0 || a->job != b->job)
        return false;
    return a->job || (a->counters->size == b->counters->size &&
                      !strcmp(a->counters->program, b->counters->program));
}

/* Jobs in the order of their numbers, ranks in theirs. */
static int by_job(const void *a, const void *b)
{
    const struct inv_report *x = ((const struct process *)a)->counters;
    const struct inv_report *y = ((const struct process *)b)->counters;
    uint64_t job = ((const struct process *)a)->job, other = ((const struct process *)b)->job;
    if ((x->rank < 0) != (y->rank < 0))
        return x->rank < 0 ? 1 : -1;
    if (x->rank >= 0 && job != other)
        return job < other ? -1 : 1;
    if (x->rank >= 0 && !job && (x->size != y->size || strcmp(x->program, y->program)))
        return x->size != y->size ? (x->size < y->size ? -1 : 1) : strcmp(x->program, y->program);
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int by_start(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static bool fill_jobs(struct launch *l)
{
    double core = 0;
    l->jobs = calloc(l->count, sizeof *l->jobs);
    if (!l->jobs)
        return false;
    for (unsigned i = 0; i < l->count; i++) {
        if (i == 0 || !same_job(&l->processes[i - 1], &l->processes[i]))
            l->jobs[l->njobs++].at = &l->processes[i];
        l->jobs[l->njobs - 1].count++;
    }
    for (unsigned i = 0; i < l->njobs; i++)
        if (!fill_job(&l->jobs[i], l))
            return false;
    for (unsigned i = 0; i < l->njobs; i++)
        fill_unmoved(&l->jobs[i], l);
    qsort(l->jobs, l->njobs, sizeof *l->jobs, by_start);
    double from = l->jobs[0].from, until = 0;
    for (unsigned i = 0; i < l->njobs; i++) {
        until = larger_of(until, l->jobs[i].until);
        core += l->jobs[i].useful_core;
        l->energy += l->jobs[i].energy;
    }
    l->elapsed = until - from;
    l->efficiency = share_of(core, l->ncores * l->elapsed);
    return true;
}

bool launch_fill(struct launch *l, struct rmd_client_report *reports, unsigned count)
{
    uint64_t first = UINT64_MAX;
    l->reports = reports;
    l->count = count;
    l->processes = calloc(count, sizeof *l->processes);
    if (!l->processes || !begin_nodes(l, count))
        return false;
    l->anonymous = true;
    for (unsigned i = 0; i < count; i++) {
        first = reports[i].report.start_ns < first ? reports[i].report.start_ns : first;
        l->anonymous = l->anonymous && !reports[i].report.owned_ns;
        if (!reports[i].report.node && reports[i].report.energy <= INV_ENERGY_GONE)
            l->counters = reports[i].report.energy;
    }
    for (unsigned i = 0; i < count; i++) {
        reports[i].report.program[INV_NAME_BYTES - 1] = '\0';
        l->processes[i] = (struct process){.counters = &reports[i].report,
                                           .record = reports[i].record,
                                           .room = reports[i].sites,
                                           .node = node_of(l, &reports[i].report)};
        if (!fill_process(&l->processes[i], l, first))
            return false;
    }
    qsort(l->processes, count, sizeof *l->processes, by_job);
    return fill_jobs(l);
}

void launch_free(struct launch *l)
{
    for (unsigned i = 0; l->processes && i < l->count; i++) {
        free(l->processes[i].sites.at);
        free(l->processes[i].functions.at);
        free(l->processes[i].controls);
    }
    for (unsigned i = 0; l->jobs && i < l->njobs; i++) {
        free(l->jobs[i].sites.at);
        free(l->jobs[i].functions.at);
    }
    free(l->nodes);
    free(l->processes);
    free(l->jobs);
    rmd_client_reports_free(l->reports, l->count);
    l->nodes = NULL;
    l->processes = NULL;
    l->jobs = NULL;
    l->reports = NULL;
    l->count = l->njobs = l->nnodes = 0;
}
