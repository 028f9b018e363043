/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * estimate.c - how much longer the program would have taken if no core had moved, see estimate.h.
 *
 * Without moving cores each of n ranks has a = C / n of the C cores.  In an iteration for which it
 * needed c core-seconds, while its main thread was useful for u, it would have been useful for
 *
 *     t = max(c / a, u)
 *
 * since it could not have used more than its own, and with fewer it was as quick as it can be.  An
 * iteration ends when its slowest rank is done, so it would have taken longer by max t - max u.
 *
 * Every rank writes into its record how much t and u there have been so far, a moment: when it
 * arrives at the call in which an iteration ends, and when it has waited there.  The ranks wait for
 * each other in every iteration, so iterations end at the same time in all ranks.  The first member
 * of the job cuts time where its own iterations end, and takes the differences of all members in
 * each interval.  Between two moments of another rank it interpolates.  It judges an interval an iteration
 * or two later, when the other ranks have written their moments as well.
 *
 * Oversubscribed (n > C), several ranks take turns on a core: rank r is on core r * C / n, and t is
 * the sum over the ranks of a core.  u is then the larger of what a rank needs and an equal share
 * of all work.  Core time is CPU time, since the number of tokens does not say how the kernel
 * divides the cores.
 */
#include "mpi-shim/measure/estimate.h"
#include "assertion.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/ranks/world.h"
#include "process.h"

#include <math.h>
#include <string.h>

/* The least distance of two moments.  APART_US: us for each member, whose moments cost some 0.1 us
 * to read.  CPU_APART_US: where a moment takes a system call, for CPU time. */
enum { PENDING = 16, APART_US = 10, CPU_APART_US = 1000 };

/* What a rank has computed until a time, in ns: t (oversubscribed: core time) and u. */
struct sum {
    double alone, useful;
};

/* Of the thread that called MPI_Init. */
static struct {
    double own;     /* cores of a rank; less than one: oversubscribed */
    struct sum now; /* of this rank */
    /* ticks: nothing had been computed; its last moment; and one in the call in which the iteration
     * ends, 0 none */
    uint64_t began, noted, arrived;
    uint64_t cpu_start_ns;

    /* the first member's: intervals that are to be judged when all have a moment after them */
    uint64_t pending[PENDING], judged; /* ticks: ends of intervals; what has been judged ends here */
    unsigned count;
    struct sum then[INV_MAX_SLOTS]; /* of each member, until `judged` */
    double slowest_ns, unmoved_ns, judged_ns; /* as in the record */
} estimate;

static bool oversubscribed(void) { return estimate.own < 1; }
static bool is_cpu_time(void) { return oversubscribed() && !inv_process.emulated; }

static struct inv_record *our_record(void)
{
    return atomic_load_explicit(&inv_process.record, memory_order_acquire);
}

/* CPU time so far, outside of waits for MPI. */
static double cpu_ns(const struct inv_record *r)
{
    double all = (double)(inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - estimate.cpu_start_ns);
    double spun = (double)atomic_load_explicit(&r->spun_ns, memory_order_relaxed);
    return fmax(all - spun, 0);
}

void shim_estimate_start(uint64_t now)
{
    struct inv_record *r = our_record();
    if (!r || shim_world.members < 1)
        return;
    memset(&estimate, 0, sizeof estimate);
    estimate.own = (double)inv_process.ncores / shim_world.members;
    estimate.began = estimate.noted = estimate.judged = now;
    if (is_cpu_time())
        estimate.cpu_start_ns = inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* --- moments */

static void note_moment(struct inv_record *r, uint64_t now, struct sum sum)
{
    uint64_t n = atomic_load_explicit(&r->moments, memory_order_relaxed);
    struct inv_moment *m = &r->moment[n % INV_MOMENTS];
    atomic_store_explicit(&m->ticks, now, memory_order_relaxed);
    atomic_store_explicit(&m->alone_ns, (uint64_t)sum.alone, memory_order_relaxed);
    atomic_store_explicit(&m->useful_ns, (uint64_t)sum.useful, memory_order_relaxed);
    /* release: partner is the acquire in interpolate_sum, which then sees the moment */
    atomic_store_explicit(&r->moments, n + 1, memory_order_release);
    estimate.noted = now;
}

static struct sum read_sum(const struct inv_moment *m)
{
    return (struct sum){
        (double)atomic_load_explicit((_Atomic uint64_t *)&m->alone_ns, memory_order_relaxed),
        (double)atomic_load_explicit((_Atomic uint64_t *)&m->useful_ns, memory_order_relaxed)};
}

/* What a rank had computed by then.  False: it has no moment after that yet.  Moments that are
 * written over meanwhile were long before: they say too much, by what the next interval lacks then. */
static bool interpolate_sum(struct inv_record *r, uint64_t then, struct sum *sum)
{
    /* acquire: partner is the release in note_moment */
    uint64_t n = atomic_load_explicit(&r->moments, memory_order_acquire);
    struct sum after = {0}, before = {0};
    uint64_t ticks_after = 0, ticks = 0;
    for (uint64_t i = n; i > 0 && n - i < INV_MOMENTS - 1; i--) {
        const struct inv_moment *m = &r->moment[(i - 1) % INV_MOMENTS];
        ticks = atomic_load_explicit((_Atomic uint64_t *)&m->ticks, memory_order_relaxed);
        before = read_sum(m);
        if (ticks <= then)
            break;
        after = before;
        ticks_after = ticks;
    }
    if (!ticks_after) { /* the newest one is not after that: it may be it */
        *sum = before;
        return n && ticks == then;
    }
    if (ticks > then && n < INV_MOMENTS) { /* before its first: since nothing */
        before = (struct sum){0, 0};
        ticks = estimate.began;
    }
    double part = ticks < then ? (double)(then - ticks) / (double)(ticks_after - ticks) : 0;
    sum->alone = before.alone + part * (after.alone - before.alone);
    sum->useful = before.useful + part * (after.useful - before.useful);
    return true;
}

/* --- intervals */

/* Adds an interval, in which these have computed so much more. */
static void add_piece(const struct sum *now, int members)
{
    double slowest = 0, useful = 0, of_core = 0, all = 0;
    int core = -1;
    for (int i = 0; i < members; i++) {
        double t = now[i].alone - estimate.then[i].alone;
        double u = oversubscribed() ? t : now[i].useful - estimate.then[i].useful;
        int its_core = oversubscribed() ? (int)(i * estimate.own) : i;
        of_core = its_core == core ? of_core + t : t;
        core = its_core;
        all += t;
        useful = fmax(useful, u);
        slowest = fmax(slowest, of_core);
    }
    if (oversubscribed())
        useful = fmax(useful, all / inv_process.ncores);
    estimate.slowest_ns += useful;
    estimate.unmoved_ns += fmax(slowest, useful);
}

static void store_ns(_Atomic uint64_t *to, double ns)
{
    atomic_store_explicit(to, (uint64_t)ns, memory_order_relaxed);
}

/* False: another rank has no moment after it yet. */
static bool judge_piece(struct inv_record *r, uint64_t end)
{
    struct sum now[INV_MAX_SLOTS];
    int members = atomic_load_explicit(&shim_world.members, memory_order_acquire);
    inv_assert(members >= 1 && members <= INV_MAX_SLOTS);
    for (int i = 0; i < members; i++)
        if (!interpolate_sum(inv_record_at(inv_process.table, shim_world.member[i].slot), end,
                             &now[i]))
            return false;
    add_piece(now, members);
    memcpy(estimate.then, now, (size_t)members * sizeof *now);
    estimate.judged_ns += (double)shim_ticks_to_ns(end - estimate.judged);
    estimate.judged = end;
    store_ns(&r->slowest_ns, estimate.slowest_ns);
    store_ns(&r->slowest_unmoved_ns, estimate.unmoved_ns);
    store_ns(&r->judged_ns, estimate.judged_ns);
    return true;
}

/* Without room two intervals become one. */
static void end_piece(struct inv_record *r, uint64_t now)
{
    if (estimate.count == PENDING)
        memmove(estimate.pending, estimate.pending + 1,
                --estimate.count * sizeof *estimate.pending);
    inv_assert(estimate.count < PENDING);
    estimate.pending[estimate.count++] = now;
    unsigned done = 0;
    while (done < estimate.count && judge_piece(r, estimate.pending[done]))
        done++;
    inv_assert(done <= estimate.count);
    estimate.count -= done;
    memmove(estimate.pending, estimate.pending + done, estimate.count * sizeof *estimate.pending);
}

/* --- iterations */

/* What there has been, with the part of an iteration that has not ended. */
static struct sum current_sum(struct inv_record *r, double useful_ns, double core_ns)
{
    struct sum sum = {estimate.now.alone, estimate.now.useful + useful_ns};
    if (is_cpu_time())
        sum.alone = cpu_ns(r);
    else
        sum.alone += oversubscribed() ? core_ns : fmax(core_ns / estimate.own, useful_ns);
    return sum;
}

static bool is_apart(uint64_t now)
{
    uint64_t us = APART_US * (uint64_t)shim_world.members;
    us = is_cpu_time() && us < CPU_APART_US ? CPU_APART_US : us;
    return now - estimate.noted >= us * shim_us;
}

void shim_estimate_arrival(uint64_t now, double useful_ns, double core_ns)
{
    struct inv_record *r = our_record();
    if (!r || !(estimate.own > 0) || !is_apart(now))
        return;
    note_moment(r, now, current_sum(r, useful_ns, core_ns));
    estimate.arrived = now;
}

void shim_estimate_iteration(uint64_t now, double useful_ns, double core_ns, bool waited)
{
    struct inv_record *r = our_record();
    if (!r || !(estimate.own > 0))
        return;
    bool apart = waited && is_apart(now);
    if (!is_cpu_time() || apart)
        estimate.now = current_sum(r, useful_ns, core_ns);
    if (apart)
        note_moment(r, now, estimate.now);
    if (shim_world.me == 0 && shim_world.members > 1 && (apart || estimate.arrived))
        end_piece(r, apart ? now : estimate.arrived);
    estimate.arrived = 0;
}
