/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * estimate.c - how much longer the program would have taken if no core had moved, see estimate.h.
 *
 * If no core moved, each of n ranks would have a = C / n of the C cores.  In an iteration for which
 * a rank needed c core-seconds, while its main thread was useful for u, that thread would be useful
 * for
 *
 *     t = max(c / a, u)
 *
 * since the rank could not use more than its a cores; if it used fewer, it was as quick as it can
 * be.  An iteration ends when its slowest rank is done, so it would take longer by max t - max u.
 *
 * Every rank writes into its record how much t and u there have been so far, a sample: when it
 * arrives at the call in which an iteration ends, and when it has waited there.  The ranks wait for
 * each other in every iteration, so iterations end at the same time in all ranks.  The first rank
 * of the job cuts time where its own iterations end, and takes the differences of all ranks of the
 * domain in each interval.  Between two samples of another rank it interpolates.  It judges an
 * interval an iteration or two later, when the other ranks have written their samples as well.
 *
 * Oversubscribed (n > C), several ranks take turns on a core: rank r is on core r * C / n, and t is
 * the sum over the ranks of a core.  u is then the larger of what a rank needs and an equal share
 * of all work.  Core time is CPU time, since the number of tokens does not say how the kernel
 * divides the cores.
 */
#include "mpi-shim/measure/estimate.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/ranks/world.h"
#include "libinvasive/process.h"

#include <math.h>
#include <string.h>

/* The least time between two samples.  APART_US: for each domain rank, whose samples cost some 0.1
 * us to read.  CPU_APART_US: if a sample needs CPU time, which takes a system call. */
enum { APART_US = 10, CPU_APART_US = 1000 };

static bool oversubscribed(const struct shim_estimate *e) { return e->own < 1; }
static bool is_cpu_time(const struct shim_estimate *e)
{
    return oversubscribed(e) && !inv_process.emulated;
}

/* CPU time so far, outside of waits for MPI. */
static double cpu_ns(const struct shim_estimate *e, const struct inv_record *r)
{
    double all = (double)(inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - e->cpu_start_ns);
    double spun = (double)atomic_load_explicit(&r->spun_ns, memory_order_relaxed);
    return fmax(all - spun, 0);
}

void shim_estimate_start(struct shim_estimate *e, uint64_t now)
{
    struct inv_record *r = inv_own_record();
    if (!r || shim_world.domain_ranks < 1)
        return;
    memset(e, 0, sizeof *e);
    e->own = (double)inv_process.ncores / shim_world.domain_ranks;
    e->began = e->noted = e->judged = now;
    if (is_cpu_time(e))
        e->cpu_start_ns = inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* --- samples */

static void write_sample(struct shim_estimate *e, struct inv_record *r, uint64_t now,
                         struct shim_sum sum)
{
    uint64_t n = atomic_load_explicit(&r->samples, memory_order_relaxed);
    struct inv_sample *s = &r->sample[n % INV_SAMPLES];
    atomic_store_explicit(&s->ticks, now, memory_order_relaxed);
    atomic_store_explicit(&s->unmoved_ns, (uint64_t)sum.unmoved, memory_order_relaxed);
    atomic_store_explicit(&s->useful_ns, (uint64_t)sum.useful, memory_order_relaxed);
    /* release: partner is the acquire in interpolate_sum, which then sees the sample */
    atomic_store_explicit(&r->samples, n + 1, memory_order_release);
    e->noted = now;
}

static struct shim_sum read_sum(const struct inv_sample *s)
{
    return (struct shim_sum){
        (double)atomic_load_explicit((_Atomic uint64_t *)&s->unmoved_ns, memory_order_relaxed),
        (double)atomic_load_explicit((_Atomic uint64_t *)&s->useful_ns, memory_order_relaxed)};
}

/* What a rank had computed by the time `then` (ticks).  False: it has no sample after `then` yet.
 * If its samples around `then` are overwritten meanwhile, later ones are read: the sum is too
 * large, and the next interval too small by the same amount. */
static bool interpolate_sum(const struct shim_estimate *e, struct inv_record *r, uint64_t then,
                            struct shim_sum *sum)
{
    /* acquire: partner is the release in write_sample */
    uint64_t n = atomic_load_explicit(&r->samples, memory_order_acquire);
    struct shim_sum after = {0}, before = {0};
    uint64_t ticks_after = 0, ticks = 0;
    for (uint64_t i = n; i > 0 && n - i < INV_SAMPLES - 1; i--) {
        const struct inv_sample *s = &r->sample[(i - 1) % INV_SAMPLES];
        ticks = atomic_load_explicit((_Atomic uint64_t *)&s->ticks, memory_order_relaxed);
        before = read_sum(s);
        if (ticks <= then)
            break;
        after = before;
        ticks_after = ticks;
    }
    if (!ticks_after) { /* the newest sample is not after `then`, but may be at that time */
        *sum = before;
        return n && ticks == then;
    }
    if (ticks > then && n < INV_SAMPLES) { /* before the rank's first sample: it began with zero */
        before = (struct shim_sum){0, 0};
        ticks = e->began;
    }
    double part = ticks < then ? (double)(then - ticks) / (double)(ticks_after - ticks) : 0;
    sum->unmoved = before.unmoved + part * (after.unmoved - before.unmoved);
    sum->useful = before.useful + part * (after.useful - before.useful);
    return true;
}

/* --- intervals */

/* Adds the interval from e->then to `now`, the sums of the domain ranks at its ends. */
static void add_piece(struct shim_estimate *e, const struct shim_sum *now, int domain_ranks)
{
    double slowest = 0, useful = 0, of_core = 0, all = 0;
    int core = -1;
    for (int i = 0; i < domain_ranks; i++) {
        double t = now[i].unmoved - e->then[i].unmoved;
        double u = oversubscribed(e) ? t : now[i].useful - e->then[i].useful;
        int its_core = oversubscribed(e) ? (int)(i * e->own) : i;
        of_core = its_core == core ? of_core + t : t;
        core = its_core;
        all += t;
        useful = fmax(useful, u);
        slowest = fmax(slowest, of_core);
    }
    if (oversubscribed(e))
        useful = fmax(useful, all / inv_process.ncores);
    e->slowest_ns += useful;
    e->unmoved_ns += fmax(slowest, useful);
}

static void store_ns(_Atomic uint64_t *to, double ns)
{
    atomic_store_explicit(to, (uint64_t)ns, memory_order_relaxed);
}

/* Adds the interval that ends at `end` (ticks).  False: a rank has no sample after it yet. */
static bool judge_piece(struct shim_estimate *e, struct inv_record *r, uint64_t end)
{
    struct shim_sum now[INV_MAX_SLOTS];
    int domain_ranks = atomic_load_explicit(&shim_world.domain_ranks, memory_order_acquire);
    inv_assert(domain_ranks >= 1 && domain_ranks <= INV_MAX_SLOTS);
    for (int i = 0; i < domain_ranks; i++)
        if (!interpolate_sum(e, inv_record_at(inv_process.table, shim_world.domain_rank[i].slot),
                             end, &now[i]))
            return false;
    add_piece(e, now, domain_ranks);
    memcpy(e->then, now, (size_t)domain_ranks * sizeof *now);
    e->judged_ns += (double)shim_ticks_to_ns(end - e->judged);
    e->judged = end;
    store_ns(&r->slowest_ns, e->slowest_ns);
    store_ns(&r->slowest_unmoved_ns, e->unmoved_ns);
    store_ns(&r->judged_ns, e->judged_ns);
    return true;
}

/* An interval ends.  If there is no room, it becomes a part of the next one. */
static void end_piece(struct shim_estimate *e, struct inv_record *r, uint64_t now)
{
    if (e->count == SHIM_ESTIMATE_PENDING)
        memmove(e->pending, e->pending + 1,
                --e->count * sizeof *e->pending);
    inv_assert(e->count < SHIM_ESTIMATE_PENDING);
    e->pending[e->count++] = now;
    unsigned done = 0;
    while (done < e->count && judge_piece(e, r, e->pending[done]))
        done++;
    inv_assert(done <= e->count);
    e->count -= done;
    memmove(e->pending, e->pending + done, e->count * sizeof *e->pending);
}

/* --- iterations */

/* What this rank has computed, with the part of an iteration that has not ended. */
static struct shim_sum current_sum(const struct shim_estimate *e, struct inv_record *r,
                                   double useful_ns, double core_ns)
{
    struct shim_sum sum = {e->now.unmoved, e->now.useful + useful_ns};
    if (is_cpu_time(e))
        sum.unmoved = cpu_ns(e, r);
    else
        sum.unmoved += oversubscribed(e) ? core_ns : fmax(core_ns / e->own, useful_ns);
    return sum;
}

static bool is_apart(const struct shim_estimate *e, uint64_t now)
{
    uint64_t us = APART_US * (uint64_t)shim_world.domain_ranks;
    us = is_cpu_time(e) && us < CPU_APART_US ? CPU_APART_US : us;
    return now - e->noted >= us * shim_clock.us;
}

void shim_estimate_arrival(struct shim_estimate *e, uint64_t now, double useful_ns, double core_ns)
{
    struct inv_record *r = inv_own_record();
    if (!r || !(e->own > 0) || !is_apart(e, now))
        return;
    write_sample(e, r, now, current_sum(e, r, useful_ns, core_ns));
    e->arrived = now;
}

void shim_estimate_iteration(struct shim_estimate *e, uint64_t now, double useful_ns,
                             double core_ns, bool waited)
{
    struct inv_record *r = inv_own_record();
    if (!r || !(e->own > 0))
        return;
    bool apart = waited && is_apart(e, now);
    if (!is_cpu_time(e) || apart)
        e->now = current_sum(e, r, useful_ns, core_ns);
    if (apart)
        write_sample(e, r, now, e->now);
    if (shim_world.me == 0 && shim_world.domain_ranks > 1 && (apart || e->arrived))
        end_piece(e, r, apart ? now : e->arrived);
    e->arrived = 0;
}
