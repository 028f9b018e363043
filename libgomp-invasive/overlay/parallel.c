/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * parallel.c - entry points of parallel regions: upstream's, told apart by function.
 *
 * INVASIVE_TEAM=adaptive: a team larger than the cores under it costs nothing but memory as long
 * as its implicit tasks run to their ends, and some microseconds for each one that sleeps in the
 * middle, at a barrier for instance.  A function whose implicit tasks were seen to spend more
 * than some percent of their core time on that (history.h) gets smaller teams: as many threads as
 * the process has cores when the next region begins.
 */
#include "parallel.h"

#define GOMP_parallel_start upstream_parallel_start
#define GOMP_parallel upstream_parallel
#define GOMP_parallel_reductions upstream_parallel_reductions
#include <../libgomp/parallel.c>
#undef GOMP_parallel_start
#undef GOMP_parallel
#undef GOMP_parallel_reductions

#include "history.h"
#include "process.h"
#include <libinvasive/base/environment.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLEEP_NS = 6000,     /* core time that one sleep and its wake cost */
    MOST_PERCENT = 5,    /* of the core time that a region may spend on them */
    NARROW_REGIONS = 1024, /* after so many regions one is made as large as asked for, to see
                              whether its threads still sleep */
};

struct gomp_team_settings gomp_team_settings;
__thread unsigned gomp_team_limit __attribute__((tls_model("initial-exec")));

/* Is a team of n too expensive for its function? */
static bool sleeps_much (const struct gomp_history *h, unsigned n)
{
    uint64_t waits = atomic_load_explicit(&h->waits, memory_order_relaxed);
    uint64_t task_ns = gomp_history_task_ns(h, n);
    if (task_ns == 0) /* wait until one has been timed */
        return false;
    return waits * SLEEP_NS / GOMP_WAITS_ONE * 100 > task_ns * MOST_PERCENT;
}

/* Should this region be no larger than the cores?  Decided once for NARROW_REGIONS regions: what
 * is measured with small teams says nothing about large ones. */
static bool is_narrow (struct gomp_history *h, unsigned n)
{
    uint32_t narrow = atomic_load_explicit(&h->narrow, memory_order_relaxed);
    if (narrow == 0 && !sleeps_much(h, n))
        return false;
    narrow = narrow < NARROW_REGIONS ? narrow + 1 : 0;
    atomic_store_explicit(&h->narrow, narrow, memory_order_relaxed);
    return narrow > 0;
}

static void find_limit (void (*fn) (void *), unsigned requested)
{
    gomp_team_limit = 0;
    const struct gomp_task_icv *icv = gomp_icv(false);
    if (!icv->dyn_var || !inv_managed() || gomp_thread()->ts.level > 0)
        return;
    unsigned long n = requested > 0 ? requested : icv->nthreads_var;
    struct gomp_history *h = gomp_history_find(fn);
    if (h && n > 1 && is_narrow(h, (unsigned)n))
        gomp_team_limit = gomp_cores_at_hand();
}

unsigned gomp_team_vary (void (*fn) (void *), unsigned requested)
{
    if (gomp_team_settings.adaptive)
        find_limit(fn, requested);
    return gomp_team_settings.tuned ? gomp_tuned_team(fn, requested, gomp_team_choices) : requested;
}

static void check_bind (void)
{
    const char *setting = inv_getenv("INVASIVE_BIND");
    if (setting && strcmp(setting, "strict") != 0 && strcmp(setting, "elastic") != 0)
        gomp_error("INVASIVE_BIND is '%s', which is neither strict nor elastic: ignored", setting);
}

void gomp_team_initialize (void)
{
    const char *setting = inv_getenv("INVASIVE_TEAM");
    check_bind();
    if (inv_getenv("INVASIVE_TUNE") && inv_wanted())
        gomp_team_settings.tuned = gomp_team_settings.varies = true;
    if (!setting || strcmp(setting, "fixed") == 0)
        return;
    if (strcmp(setting, "adaptive") != 0) {
        gomp_error("INVASIVE_TEAM is '%s', which is neither fixed nor adaptive: it is fixed",
                   setting);
        return;
    }
    if (!inv_wanted())
        return;
    gomp_team_settings.adaptive = gomp_team_settings.varies = true;
    if (!inv_getenv("OMP_DYNAMIC") && !inv_getenv("OMP_DYNAMIC_ALL")) {
        gomp_team_settings.dyn_ours = true;
        gomp_global_icv.dyn_var = true;
    }
}

/* --- what compiled code calls */

static void parallel_start (void (*fn) (void *), void *data, unsigned num_threads)
{
    num_threads = gomp_team_is_for(fn, num_threads);
    upstream_parallel_start(fn, data, num_threads);
}

static void parallel (void (*fn) (void *), void *data, unsigned num_threads, unsigned flags)
{
    num_threads = gomp_team_is_for(fn, num_threads);
    upstream_parallel(fn, data, num_threads, flags);
}

static unsigned parallel_reductions (void (*fn) (void *), void *data, unsigned num_threads,
                                     unsigned flags)
{
    num_threads = gomp_team_is_for(fn, num_threads);
    return upstream_parallel_reductions(fn, data, num_threads, flags);
}

#define ENTRY(entry, ours)                                                                       \
    extern __typeof(ours) called_##ours __asm__("GOMP_" #entry) __attribute__((alias(#ours)))
ENTRY(parallel_start, parallel_start);
ENTRY(parallel, parallel);
ENTRY(parallel_reductions, parallel_reductions);
