/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tuned_team.c - see tuned_team.h.
 *
 * An iteration is what lies between two regions of the function that takes longest.  Of each function the time from the begin of its regions to
 * the begin of the next region counts.  Only the thread that began the first region is timed.
 */
#include "libgomp.h"
#include "tuned_team.h"
#include "process.h"
#include "tls.h"

/* FUNCTIONS: further ones are not looked at.  LEARN: after this time the function is chosen, if it has had REPEATED
 * regions.  LOST: another function is chosen when this one has not been seen for so
 * many samples, and LEARN. */
enum { FUNCTIONS = 16, REPEATED = 4, LEARN_NS = 20000000, LOST = 16 };

/* Only the timed thread reads and writes it, but for `thread` and `told`. */
static struct {
    _Atomic(struct gomp_thread *) thread; /* written once; relaxed */
    /* gomp_tuned_team_is_told.  relaxed: the size that was told is from before the next region */
    _Atomic bool told;
    bool offered;
    bool alone; /* the process is no rank beside others, whose iterations the MPI shim tells of */
    struct function {
        void (*fn) (void *);
        uint64_t total_ns;
        unsigned regions;
    } function[FUNCTIONS], *latest;
    unsigned functions;
    uint64_t learning_ns, latest_ns; /* begin of learning, and of the latest region */
    void (*marker) (void *); /* the function; NULL: not chosen */
    unsigned group, passed;  /* regions of it in a sample, and since the last one ended */
    uint64_t ended_ns, mean_ns; /* end of the last sample; its length as expected */
} timed;

static struct function *find_function (void (*fn) (void *))
{
    for (unsigned i = 0; i < timed.functions; i++)
        if (timed.function[i].fn == fn)
            return &timed.function[i];
    if (timed.functions == FUNCTIONS)
        return NULL;
    timed.function[timed.functions] = (struct function){.fn = fn};
    return &timed.function[timed.functions++];
}

static void learn_anew (uint64_t now)
{
    timed.marker = NULL;
    timed.latest = NULL;
    timed.functions = 0;
    timed.learning_ns = now;
}

static void begin_timing (void)
{
    timed.alone = inv_ranks_here() <= 1;
    learn_anew(inv_now_ns());
}

static void choose_marker (uint64_t now)
{
    const struct function *most = NULL;
    for (unsigned i = 0; i < timed.functions; i++)
        if (timed.function[i].regions >= REPEATED && (!most || timed.function[i].total_ns > most->total_ns))
            most = &timed.function[i];
    if (!most)
        return;
    uint64_t each = (now - timed.learning_ns) / most->regions + 1;
    timed.marker = most->fn;
    timed.group = (unsigned)(INV_TUNING_SAMPLE_NS / each) + 1;
    timed.mean_ns = each * timed.group;
    timed.passed = 0;
    timed.ended_ns = now;
}

static void learn_function (void (*fn) (void *), uint64_t now)
{
    if (timed.latest)
        timed.latest->total_ns += now - timed.latest_ns;
    timed.latest = find_function(fn);
    timed.latest_ns = now;
    if (timed.latest)
        timed.latest->regions++;
    if (now - timed.learning_ns > LEARN_NS)
        choose_marker(now);
}

static void pass_region (void (*fn) (void *))
{
    if (timed.marker && fn == timed.marker && ++timed.passed < timed.group)
        return;
    uint64_t now = inv_now_ns();
    if (!timed.marker) {
        learn_function(fn, now);
    } else if (fn == timed.marker) {
        inv_tuning_add(INV_ITERATIONS_OF_REGIONS, (uintptr_t)fn, (now - timed.ended_ns) / timed.group);
        timed.passed = 0;
        timed.ended_ns = now;
    } else if (now - timed.ended_ns > LEARN_NS && now - timed.ended_ns > LOST * timed.mean_ns) {
        learn_anew(now);
    }
}

/* Is the caller the timed thread?  The first one that asks is. */
static bool is_timed (void)
{
    struct gomp_thread *self = gomp_thread(), *known = NULL;
    return atomic_compare_exchange_strong_explicit(&timed.thread, &known, self, memory_order_relaxed,
                                                   memory_order_relaxed) || known == self;
}

static void offer_sizes (gomp_team_choices_fn *choices)
{
    int sizes[GOMP_TEAM_CHOICES];
    unsigned count = choices(sizes);
    timed.offered = true;
    if (count > 1 && !atomic_load_explicit(&timed.told, memory_order_relaxed))
        inv_tuning_offer(INV_TUNED_TEAM, sizes, count, sizes[count - 1]);
}

unsigned gomp_tuned_team (void (*fn) (void *), unsigned requested, gomp_team_choices_fn *choices)
{
    if (gomp_thread()->ts.level > 0 || !inv_managed() || !inv_is_tuned())
        return requested;
    if (is_timed()) {
        if (!timed.learning_ns)
            begin_timing();
        if (requested == 0 && !timed.offered)
            offer_sizes(choices);
        if (timed.alone)
            pass_region(fn);
    }
    unsigned team = inv_tuned_team();
    if (requested > 0 || team == 0 || atomic_load_explicit(&timed.told, memory_order_relaxed))
        return requested;
    const struct gomp_task_icv *icv = gomp_icv(false);
    bool fits = team < icv->nthreads_var && !icv->size_is_asked_for && !gomp_strict_threads();
    return fits ? team : requested;
}

void gomp_tuned_team_is_told (void)
{
    if (!atomic_exchange_explicit(&timed.told, true, memory_order_relaxed))
        inv_tuning_keep_team();
}
