/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workload.c - measures useful and waiting time by iteration, and announces the workload.
 *
 * Time is useful between waits.  phase.c says where iterations end; while it does not know,
 * the time is cut into windows of WINDOW_US.  Both end with a wait, since that is where the
 * ranks of a job synchronise, so that iterations take equally long in all of them.  Iterations of
 * the same call sites are a class.  Of each class
 *
 *     w     useful core time / length, in cores: the rate at which the rank works
 *     S(c)  the rate, iterations / useful time, by c = useful core time / useful time, the
 *           cores under the teams on average (measure.c)
 *
 * are measured over samples of at least SAMPLE_US.  The class that took most of the last
 * second is the one whose w the rank announces.  Each rank shows this w in its slot, and announces
 * as workload
 *
 *     W_i = cores of the domain * w_i / sum of w_j over the job's ranks in the domain
 *
 * so that anything which slows all ranks down alike does not change it, as measured workload: rmd
 * converts it from time of this rank's cores to time of whole ones.  W_i is announced when it
 * has changed for good (inv_steady): rmd moves ownership for imbalance that persists, and lending
 * evens out imbalance that comes and goes.  Only the thread that called MPI_Init is measured.
 */
#include "mpi-shim/measure/workload.h"
#include "libinvasive/base/assertion.h"
#include "invasive.h"
#include "mpi-shim/dispatch/guard.h"
#include "libinvasive/record/record.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/estimate.h"
#include "mpi-shim/measure/iteration.h"
#include "mpi-shim/measure/measure.h"
#include "mpi-shim/measure/phase.h"
#include "mpi-shim/measure/short_waits.h"
#include "mpi-shim/measure/site.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/ranks/world.h"
#include "libinvasive/process.h"
#include "libinvasive/base/steady.h"

#include <math.h>
#include <string.h>

/* WINDOW, SAMPLE, RECENT: see above.  SHORT: iterations that are shorter on average are put
 * together; on many cores longer ones, too.  PATIENCE: the marker is given up if an iteration takes
 * longer than this and eight times the mean length, or a guess of it before there is a mean.
 * SILENT: a rank that has shown no w for this number of samples counts as an average one. */
enum { WINDOW_US = 10000, SAMPLE_US = 10000, SHORT_US = 200, PATIENCE_US = 50000 };
enum { DELIVERY_NS = 100000000, RECENT_NS = 1000000000, TRIAL = 16, GRAPH_SAMPLES = 16, SILENT_SAMPLES = 16 };
static const double CHANGE = 0.05; /* smaller changes of a graph are not announced */
static const double LEAST_USE = 0.001; /* least core time of useful time, if clocks have not
                                          moved */
static const double LEAST_DELIVERED = 0.1; /* by a core: less is no slow core but a mistake */
static const double CLEARLY = 1.5; /* another class becomes dominant if it takes this times as
                                      long */

/* Besides struct shim_iteration_class: the present sample of a class, in ns, and the results of
 * samples. */
struct class {
    double length, useful, cores;
    unsigned iterations, samples;
    double recent; /* ns of the last RECENT_NS, about */
    double rate;   /* w, mean of the last samples */
    struct shim_scalability scalability;
};

/* Written by the thread that called MPI_Init only. */
static struct {
    uint64_t last_end; /* ticks: the last wait's end; useful time runs since then */
    uint64_t useful, wait, waits;
    uint64_t spun;          /* ticks of waiting in which the thread kept its core */
    uint64_t idle_ns;       /* core time held while it slept */
    uint64_t lent_at, lent; /* ticks: the last lend, and all lends since the last recorded wait */
    uint64_t lent_held_ns;  /* inv_held_ns() at the last lend, */
    bool lent_read;         /* if it was read then */
    uint64_t read_at;       /* ticks: the latest lend at which it was read */

    uint64_t deadline;         /* ticks: it ends with the wait that is over after this */
    double mean_us;            /* length of the iterations since the marker was chosen */
    unsigned since_mark;
    double windows_us[2]; /* lengths of the last ones, each as long as a call takes to come at least */

    struct { /* the state when the iteration began */
        uint64_t ticks, useful, spun, idle_ns, held_ns;
        bool marked; /* the marker was known */
    } begin;
    struct { /* what cores deliver, and the state when it was measured last */
        double part;
        uint64_t at_ns, held_ns, idle_ns, cpu_ns;
    } delivery;
    struct { /* the present sample for `invade --tune` */
        uint64_t kind, ns, passes;
    } tuning;
    unsigned classes, dominant;
    struct inv_steady workload;
    unsigned silent_samples;
    struct inv_scalability graph;
    enum shim_phase_event due; /* an iteration ends with the wait that comes next */
    struct shim_short_waits short_waits; /* of the first rank, which decides */
    struct shim_estimate estimate;
    struct class class[SHIM_CLASSES];
    struct shim_iteration_class sums[SHIM_CLASSES];
} work;

struct shim_workload shim_workload = {.iteration = 2};

static struct inv_counters *get_counters(void)
{
    return &inv_slot_at(inv_process.table, inv_process.slot)->counters;
}

/* Reading every core's word costs up to 0.1 us a core where others write them.  Every 10 us a core
 * it takes about 1 % of the time. */
static double least_us_between_reads(void) { return 10.0 * inv_process.ncores; }

static void publish_counters(void)
{
    struct inv_counters *c = get_counters();
    atomic_store_explicit(&c->useful_ns, shim_ticks_to_ns(work.useful), memory_order_relaxed);
    atomic_store_explicit(&c->wait_ns, shim_ticks_to_ns(work.wait), memory_order_relaxed);
    atomic_store_explicit(&c->waits, work.waits, memory_order_relaxed);
    shim_site_stats_publish(work.sums, work.classes);
}

/* --- announcing */

static bool graphs_differ(const struct inv_scalability *a, const struct inv_scalability *b)
{
    for (int i = 0; i < INV_SCALABILITY_POINTS; i++)
        if (a->point[i].cores != b->point[i].cores ||
            fabsf(a->point[i].speedup - b->point[i].speedup) > (float)CHANGE * b->point[i].speedup)
            return true;
    return false;
}

/* One point says only that nothing is known of any other number of cores. */
static void announce_graph(const struct class *c)
{
    struct inv_scalability graph;
    if (shim_scalability_graph(&c->scalability, inv_process.ncores, &graph) &&
        graph.point[1].cores && graphs_differ(&graph, &work.graph) &&
        inv_announce_scalability(&graph) == 0)
        work.graph = graph;
}

/* The w that another rank shows; 0: none yet, or no valid one. */
static double read_rate(unsigned slot)
{
    double rate;
    uint64_t bits = atomic_load_explicit(&inv_slot_at(inv_process.table, slot)->rate_bits,
                                         memory_order_relaxed); /* a figure by itself */
    memcpy(&rate, &bits, sizeof rate);
    return rate > 0 && rate <= INV_MAX_CORES ? rate : 0;
}

/* This rank's part of the w of all ranks of the job in the domain; 0: not all ranks show theirs
 * yet. */
static double share_of_job(double mine)
{
    double sum = mine;
    int silent = 0, domain_ranks = shim_world.domain_ranks;
    for (int i = 0; i < domain_ranks; i++) {
        double rate = i == shim_world.me ? mine : read_rate(shim_world.domain_rank[i].slot);
        sum += i == shim_world.me ? 0 : rate;
        silent += !(rate > 0);
    }
    if (silent && ++work.silent_samples < SILENT_SAMPLES)
        return 0;
    return mine / sum * (domain_ranks - silent) / domain_ranks;
}

static void announce_workload(double rate)
{
    uint64_t bits;
    memcpy(&bits, &rate, sizeof bits);
    atomic_store_explicit(&inv_slot_at(inv_process.table, inv_process.slot)->rate_bits, bits,
                          memory_order_relaxed);
    double workload = share_of_job(rate) * inv_process.ncores;
    if (workload > 0 && inv_steady_add(&work.workload, workload))
        inv_announce_measured_workload(work.workload.told);
}

/* The mean speed of the cores that the process holds now; 1: that of the fastest cores. */
static double speed_of_cores(void)
{
    unsigned held = 0, sum = 0;
    for (unsigned c = 0; c < inv_process.ncores; c++)
        if (inv_core_is_held((int)c)) {
            held++;
            sum += inv_core_at(inv_process.table, c)->speed;
        }
    return held && sum ? (double)sum / INV_WHOLE_SPEED / held : 1;
}

/* How much of the time for which the process has held cores have its threads run?  Another program on a core, or
 * a hypervisor, takes the rest.  On emulated cores threads sleep to compute. */
static void measure_delivery(void)
{
    uint64_t now = inv_now_ns();
    if (inv_process.anonymous || now - work.delivery.at_ns < DELIVERY_NS)
        return;
    uint64_t held = inv_held_ns(now), cpu = inv_process.emulated ? 0 : inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    double used = (double)held - (double)work.delivery.held_ns - (double)(work.idle_ns - work.delivery.idle_ns);
    double part = inv_process.emulated || used <= 0 ? 1 : fmin((double)(cpu - work.delivery.cpu_ns) / used, 1);
    part = fmin(fmax(part * speed_of_cores(), LEAST_DELIVERED), 1);
    bool first = !work.delivery.at_ns;
    work.delivery.part = first ? 1 : work.delivery.part + (part - work.delivery.part) / 4;
    work.delivery.at_ns = now;
    work.delivery.held_ns = held;
    work.delivery.idle_ns = work.idle_ns;
    work.delivery.cpu_ns = cpu;
    if (first)
        return;
    uint64_t bits;
    memcpy(&bits, &work.delivery.part, sizeof bits);
    atomic_store_explicit(&inv_slot_at(inv_process.table, inv_process.slot)->delivered_bits, bits,
                          memory_order_relaxed);
}

/* Chooses the class whose w the rank announces: the one that took most of the last second. */
static void weigh_class(unsigned k, double length)
{
    double keep = length < RECENT_NS ? 1 - length / RECENT_NS : 0;
    for (unsigned i = 0; i < work.classes; i++)
        work.class[i].recent *= keep;
    work.class[k].recent += length;
    if (k != work.dominant && work.class[k].recent > CLEARLY * work.class[work.dominant].recent)
        work.dominant = k;
}

static void end_sample(unsigned k)
{
    struct class *c = &work.class[k];
    double rate = c->cores / c->length;
    c->rate = c->samples++ ? c->rate + (rate - c->rate) / 4 : rate;
    if (k != SHIM_CLASS_WINDOWS && c->useful > 0)
        shim_scalability_add(&c->scalability, c->cores / c->useful, c->iterations / c->useful);
    c->length = c->useful = c->cores = 0;
    c->iterations = 0;
    if (k != work.dominant)
        return;
    measure_delivery();
    announce_workload(c->rate);
    if (c->samples % GRAPH_SAMPLES == 0)
        announce_graph(c);
}

/* --- iterations */

static unsigned class_of(uint64_t sites)
{
    for (unsigned k = 1; k < work.classes; k++)
        if (work.sums[k].sites == sites)
            return k;
    if (work.classes == SHIM_CLASSES)
        return SHIM_CLASS_WINDOWS;
    work.sums[work.classes].sites = sites;
    return work.classes++;
}

/* How long to wait for the marker.  Before the first iteration has ended, only the number of its
 * calls, and the latest times between calls, are known. */
static double patience_us(void)
{
    double guess = shim_workload.phase.period * fmax(work.windows_us[0], work.windows_us[1]);
    return shim_workload.phase.marker
               ? PATIENCE_US + 8 * (work.mean_us > 0 ? work.mean_us : guess)
               : WINDOW_US;
}

static void begin_iteration(uint64_t now)
{
    work.begin.marked = shim_workload.phase.marker;
    work.begin.ticks = now;
    work.begin.useful = work.useful;
    work.begin.spun = work.spun;
    work.begin.idle_ns = work.idle_ns;
    work.begin.held_ns = inv_held_ns(inv_now_ns());
    work.deadline = now + (uint64_t)(patience_us() * (double)shim_clock.us);
}

/* Core time of the iteration: what the process held, less what it held in waits; at least one core,
 * the thread's own, and at most all cores.  With more processes than cores processor time counts,
 * since the thread shares its core; a wait that does not sleep yields, and uses little processor
 * time. */
static double core_time(double useful)
{
    double held = (double)(inv_held_ns(inv_now_ns()) - work.begin.held_ns);
    double idle = (double)(work.idle_ns - work.begin.idle_ns);
    if (inv_process.anonymous && !inv_process.emulated)
        return fmin(fmax(held - idle, LEAST_USE * useful), useful * inv_process.ncores);
    double spun = (double)shim_ticks_to_ns(work.spun - work.begin.spun);
    return fmin(fmax(held - idle - spun, useful), useful * inv_process.ncores);
}

/* An iteration of the class whose w the rank announces has ended.  Not with emulated cores: a
 * thread that holds one may run on any CPU. */
static void learn_to_hold(unsigned k)
{
    if (shim_world.me != 0 || inv_process.emulated)
        return;
    uint32_t word = k == SHIM_CLASS_WINDOWS
                        ? shim_short_waits_no_iteration(&work.short_waits)
                        : shim_short_waits_add_iteration(&work.short_waits, inv_now_ns());
    _Atomic uint32_t *shown = &inv_slot_at(inv_process.table, inv_process.slot)->short_waits;
    if (word != atomic_load_explicit(shown, memory_order_relaxed))
        atomic_store_explicit(shown, word, memory_order_relaxed);
}

/* Lengths are told for one pass of the marker: how many an iteration has may change (judge_length). */
static void add_to_tuning(unsigned k, uint64_t length_ns)
{
    uint64_t kind = (uint64_t)shim_workload.phase.marker << 32 | k;
    if (kind != work.tuning.kind)
        work.tuning.ns = work.tuning.passes = 0;
    work.tuning.kind = kind;
    work.tuning.ns += length_ns;
    work.tuning.passes += shim_workload.phase.bundle;
    if (work.tuning.ns < INV_TUNING_SAMPLE_NS)
        return;
    inv_tuning_add(INV_ITERATIONS_OF_MPI, kind, work.tuning.ns / work.tuning.passes);
    work.tuning.ns = work.tuning.passes = 0;
}

/* The same for `invade --tune`: the first rank searches. */
static void tune(unsigned k, double length_ns)
{
    if (k == SHIM_CLASS_WINDOWS)
        return;
    if (shim_world.me > 0)
        inv_tuning_follow(shim_world.domain_rank[0].slot);
    else
        add_to_tuning(k, (uint64_t)length_ns);
}

static void end_iteration(unsigned k, uint64_t now, bool waited)
{
    if (now > work.last_end) { /* it ends at a call that did not wait */
        work.useful += now - work.last_end;
        work.last_end = now;
    }
    double length = (double)shim_ticks_to_ns(now - work.begin.ticks);
    double useful = (double)shim_ticks_to_ns(work.useful - work.begin.useful);
    double cores = core_time(useful);
    inv_assert(k < work.classes);
    struct shim_iteration_class *s = &work.sums[k];
    s->count++;
    s->length_ns += (uint64_t)length;
    s->useful_ns += (uint64_t)useful;
    s->wait_ns += (uint64_t)(length - useful);
    s->core_ns += (uint64_t)cores;
    struct class *c = &work.class[k];
    c->length += length;
    c->useful += useful;
    c->cores += cores;
    c->iterations++;
    weigh_class(k, length);
    shim_estimate_iteration(&work.estimate, now, useful, cores, waited);
    if (k == work.dominant)
        learn_to_hold(k);
    if (k == work.dominant && inv_is_tuned())
        tune(k, length);
    publish_counters();
    if (c->length >= SAMPLE_US * 1e3)
        end_sample(k);
}

/* Iterations that are too short to be measured are made longer, and the other way round. */
static void judge_length(uint64_t ticks)
{
    double us = (double)ticks / (double)shim_clock.us;
    work.mean_us = work.since_mark ? work.mean_us + (us - work.mean_us) / 8 : us;
    work.since_mark++;
    double too_short = fmax(SHORT_US, least_us_between_reads());
    if (us > 8 * too_short)
        shim_phase_shorten(&shim_workload.phase);
    if (work.since_mark < TRIAL || work.mean_us >= too_short)
        return;
    shim_phase_lengthen(&shim_workload.phase);
    work.since_mark = 0;
}

static void pass_boundary(uint64_t now, bool waited)
{
    enum shim_phase_event event = work.due;
    work.due = SHIM_PHASE_NONE;
    if (event == SHIM_PHASE_END) {
        end_iteration(class_of(shim_phase_hash(&shim_workload.phase.ended)), now, waited);
        judge_length(now - work.begin.ticks);
    } else {
        end_iteration(SHIM_CLASS_WINDOWS, now, waited);
        work.mean_us = work.since_mark = 0;
    }
    begin_iteration(now);
}

/* The deadline of an iteration or a window has passed.  If the marker was found in this window, the
 * wait for it begins now. */
static void pass_deadline(uint64_t now)
{
    if (work.begin.marked) {
        shim_phase_forget(&shim_workload.phase);
        work.mean_us = 0;
    }
    work.windows_us[1] = work.windows_us[0];
    work.windows_us[0] = (double)(now - work.begin.ticks) / (double)shim_clock.us;
    end_iteration(SHIM_CLASS_WINDOWS, now, true);
    begin_iteration(now);
}

/* --- called by the wait engine */

/* Begins a new number for `noted`, since the phase may change: no site has been noted with it. */
static void forget_notes(void) { shim_workload.iteration += 2; }

/* Called at the call in which an iteration ends. */
static void estimate_arrival(void)
{
    uint64_t now = shim_ticks();
    uint64_t useful = work.useful - work.begin.useful +
                      (now > work.last_end ? now - work.last_end : 0);
    double useful_ns = (double)shim_ticks_to_ns(useful);
    shim_estimate_arrival(&work.estimate, now, useful_ns, core_time(useful_ns));
}

void shim_workload_find_iteration(const void *call_site)
{
    uint32_t key = shim_phase_key(call_site);
    if (__builtin_expect(work.due != SHIM_PHASE_NONE, 0))
        pass_boundary(shim_ticks(), false); /* the call before did not wait */
    work.due = shim_phase_call(&shim_workload.phase, key);
    if (work.due != SHIM_PHASE_NONE && inv_is_recorded())
        estimate_arrival();
    if (work.due != SHIM_PHASE_NONE || !shim_workload.phase.marker) {
        forget_notes();
        return;
    }
    struct shim_site *site = shim_site(call_site);
    site->where = call_site;
    site->noted = shim_workload.iteration | shim_phase_marks(&shim_workload.phase, key);
}

void shim_workload_settle(uint64_t start)
{
    if (shim_thread.measured && work.due != SHIM_PHASE_NONE)
        pass_boundary(start > work.last_end ? start : work.last_end, false);
}

void shim_workload_lends(void)
{
    if (!shim_thread.measured)
        return;
    work.lent_at = shim_ticks();
    work.lent_read =
        (double)(work.lent_at - work.read_at) > least_us_between_reads() * (double)shim_clock.us;
    if (!work.lent_read)
        return; /* idle workers give their cores up meanwhile: nearly nothing is held */
    work.read_at = work.lent_at;
    work.lent_held_ns = inv_held_ns(inv_now_ns());
}

void shim_workload_regained(void)
{
    if (!shim_thread.measured)
        return;
    inv_assert(work.lent_at > 0); /* the core was lent before it came back */
    work.lent += shim_ticks() - work.lent_at;
    uint64_t held = work.lent_read ? inv_held_ns(inv_now_ns()) : 0;
    if (held > work.lent_held_ns)
        work.idle_ns += held - work.lent_held_ns;
}

void shim_workload_waited(uint64_t start, uint64_t end, bool slept)
{
    inv_polls_until = 0; /* a call that waits is not of a streak of tests */
    if (shim_thread.measured && start < work.last_end)
        return;
    shim_site_stats_waited(start, end, slept);
    if (!shim_thread.measured)
        return;
    work.useful += start - work.last_end;
    work.wait += end - start;
    work.spun += end - start > work.lent ? end - start - work.lent : 0;
    work.lent = 0;
    work.waits += slept;
    work.last_end = end;
    if (__builtin_expect(work.due != SHIM_PHASE_NONE, 0)) {
        pass_boundary(end, true);
        forget_notes();
    } else if (__builtin_expect(end > work.deadline, 0)) {
        pass_deadline(end);
        forget_notes();
    }
}

void shim_workload_start(void)
{
    if (shim_world.size > 1)
        inv_tuning_offer_percent(INV_TUNED_POLL);
    shim_thread.measured = true;
    work.classes = 1; /* SHIM_CLASS_WINDOWS */
    work.last_end = shim_ticks();
    shim_estimate_start(&work.estimate, work.last_end);
    begin_iteration(work.last_end);
}

void shim_workload_stop(void)
{
    if (!shim_thread.measured)
        return;
    end_iteration(SHIM_CLASS_WINDOWS, shim_ticks(), true);
    publish_counters();
    shim_site_stats_stop(work.sums, work.classes);
    shim_thread.measured = false;
}
