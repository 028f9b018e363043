/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * poll.c - a run of failed tests with next to nothing between them is a wait.
 *
 * Such a program has nothing better to do than to test again, but it may look at
 * something else between its tests, so it is kept inside one for a bounded time only.
 *
 * While somebody wants the core: a short time, which doubles as long as the runs end with a
 * test that succeeds, up to STAY_MOST_US, since getting the core back costs its borrower a
 * turn; a run that ends otherwise, with something else to do, starts it over.  While nobody
 * does: only when the run has lasted for PATIENT_US, and at most 1/STAY_PART of the time that
 * it has, so that the program looks at other things that much later and no more.
 *
 * A ring ends the stay: it may be for another request than the one that is tested.  A program
 * that computes between its tests shows it by the time between them, and is not touched.  One that
 * sleeps there waits all the same: its thread's processor time tells.  That is a system call, so it
 * is asked for only where gaps are as long as sleeps, and for a while not at all where they turned
 * out to be computing.
 *
 * The program may test under a lock of its own that another of its threads needs, to send what is
 * waited for.  So a thread sleeps in a test only when no other thread of the process could run:
 * none has used the processor for a while (others.c), and none lacks a core.  Where threads or
 * implicit tasks of the OpenMP runtime lack one, they go first, for a limited time.
 */
#include "shim.h"

/* Microseconds.  GAP: more than this between two tests is computing, and more than 1/GAP_PART of
 * the run so far, since a core may be taken from us for a moment by others.  RUN: tests have
 * failed for this long.  YIELD: with more processes than cores the others
 * are let run by yields for so long, about what a sleep and a wake-up on another core cost, before the caller sleeps. */
enum { GAP_US = 5, RUN_US = 30, YIELD_US = 50, PATIENT_US = 5000 };
enum { STAY_FIRST_US = 250, STAY_MOST_US = 10000, STAY_UNWANTED_US = 20000, STAY_PART = 16 };
enum { GAP_PART = 64 };
enum { RUN_TESTS = 16, RUN_NAPS = 2 };
/* Who has not tested for so long, and GAP_PART of the run, does not wait.  Longer than from a test to
 * the end of the lock that it is under. */
enum { POLLS_US = 100 };
/* A sleep is not shorter than NAP_US, and takes less than 1/NAP_PART of its time on a core, and no
 * more than NAP_CPU_US: who computes may have been waiting for its core for most of the gap. */
enum { NAP_US = 40, NAP_PART = 4, NAP_CPU_US = 50 };
/* Other threads have been quiet for so long before the caller sleeps: it has tested meanwhile, and
 * released its lock many times.  FIRST at first; so many times as much when one has run in the
 * caller's sleep, which may have begun with no processor for that thread; a quarter less else.  The
 * caller's CPU time counts, since all of them may wait for a processor.  No sleep is longer than
 * others have been quiet, or than STAY_FIRST_US.  CHECK: at least so long from one check to the
 * next. */
enum { QUIET_FIRST_US = 60, QUIET_MOST_US = 20000, QUIET_GROWS = 4, CHECK_US = 20 };
/* A thread that lets others of its process have its core first waits so long for a core: FIRST at
 * first, and twice as long each time, up to MOST, when one came back in that time.  After a time
 * that has passed in vain it tests for as long before it does so again. */
enum { WAY_FIRST_US = 250, WAY_MOST_US = 10000 };
/* Gaps that are looked at until one is a sleep, and gaps that are not looked at after that.  CLOCK: the
 * thread's processor time is asked for after a test at most so often, since the test may be under a lock
 * that others spin for: the longer it takes, the fewer chances they have.  Less than NAP_CPU_US. */
enum { NAP_CHECKS = 4, NAP_REST = 64, CLOCK_US = 20 };

static __thread struct {
    uint64_t start, last; /* ticks: the run's first test, and the end of its latest */
    uint64_t stay;        /* how long the next stay may be */
    uint64_t cpu_ns;      /* the thread's processor time at cpu_at; 0: not asked for */
    uint64_t cpu_at;      /* ticks: `last`, or less than CLOCK_US before */
    unsigned tests, naps;
    unsigned site; /* of the first one (site_stats.h) */
    bool slept, checked; /* has it; at the other threads */
} run __attribute__((tls_model("initial-exec")));

/* Long gaps to look at, and to let pass before that; of all runs of the thread. */
static __thread struct {
    unsigned checks, rest;
} naps __attribute__((tls_model("initial-exec")));

/* What this thread knows of the others of its process, in all its runs. */
static __thread struct {
    struct inv_others sample;
    uint64_t way_ns;    /* how long to wait for a core */
    uint64_t next_check; /* ticks: not before */
    uint64_t next_way;  /* ticks: not before */
    bool slept;         /* since the last check */
} others __attribute__((tls_model("initial-exec")));

/* How long the others must have been quiet, of a caller's CPU time (ns); 0: QUIET_FIRST_US.  What one
 * thread learns holds for all.  Written and read by threads that test.  relaxed: one word. */
static _Atomic uint64_t quiet_needed;

/* A test has failed, or a stay has ended. */
static void note_end(void)
{
    run.last = shim_ticks();
    uint64_t part = run.tests ? (run.last - run.start) / GAP_PART : 0;
    inv_polls_until = run.last + (part > POLLS_US * shim_us ? part : POLLS_US * shim_us);
    if (!naps.checks || (!run.naps && run.tests >= RUN_TESTS))
        run.cpu_ns = 0;
    else if (!run.cpu_ns || run.last - run.cpu_at >= CLOCK_US * shim_us) {
        run.cpu_ns = shim_thread_cpu_ns();
        run.cpu_at = run.last;
    }
}

/* Was the thread asleep in this gap between two tests? */
static bool has_slept(uint64_t gap)
{
    if (gap < NAP_US * shim_us)
        return false;
    uint64_t used = run.cpu_ns ? shim_thread_cpu_ns() - run.cpu_ns : UINT64_MAX;
    if (used < NAP_CPU_US * 1000 && used * NAP_PART < shim_ticks_to_ns(gap)) {
        naps.checks = NAP_CHECKS;
        run.naps++;
        return true;
    }
    if (run.cpu_ns && --naps.checks == 0)
        naps.rest = NAP_REST;
    else if (!run.cpu_ns && naps.rest)
        naps.rest--;
    else if (!run.cpu_ns)
        naps.checks = NAP_CHECKS;
    return false;
}

static bool is_wait(void) { return run.tests >= RUN_TESTS || run.naps >= RUN_NAPS; }

static uint64_t quiet_need_ns(void)
{
    uint64_t need = atomic_load_explicit(&quiet_needed, memory_order_relaxed);
    return need < QUIET_FIRST_US * 1000 ? QUIET_FIRST_US * 1000 : need;
}

/* Has another thread run in the caller's sleep? */
static void learn_quiet(bool ran)
{
    uint64_t need = quiet_need_ns();
    need = ran ? need * QUIET_GROWS : need - need / 4;
    need = need < QUIET_MOST_US * 1000 ? need : QUIET_MOST_US * 1000;
    atomic_store_explicit(&quiet_needed, need, memory_order_relaxed);
}

/* A run has ended in which the others had not been quiet for long enough.  If they could have run, and have not, a sleep
 * would have been as good. */
static void learn_awake(void)
{
    if (quiet_need_ns() == QUIET_FIRST_US * 1000)
        return;
    inv_others_quiet_ns(&others.sample);
    if (others.sample.spent_ns >= QUIET_FIRST_US * 1000)
        learn_quiet(false);
}

/* How long the others have been quiet (ns).  If the caller has slept since the last check, that
 * tells whether one of them has run in the sleep. */
static uint64_t check_others(void)
{
    uint64_t ran = others.sample.ran_ns;
    uint64_t quiet = inv_others_quiet_ns(&others.sample);
    if (!others.slept)
        return quiet;
    others.slept = false;
    learn_quiet(others.sample.ran_ns != ran);
    return quiet;
}

static void end_run(uint64_t end, bool hit)
{
    inv_polls_until = 0;
    if (others.slept && hit)
        check_others(); /* not at the next run: the process may compute with all its threads before that */
    else if (run.checked && hit && !run.slept)
        learn_awake();
    others.slept = run.checked = false;
    if (is_wait()) {
        unsigned here = shim_site_stats_current();
        shim_site_stats_set_current(run.site);
        shim_workload_waited(run.start, end, run.slept);
        shim_site_stats_set_current(here);
    }
    if (run.slept && !hit)
        run.stay = 0;
    run.tests = run.naps = 0;
    run.slept = false;
}

static bool is_core_wanted(void)
{
    return inv_process.anonymous || inv_hold < 0 || inv_hold_poll() != INV_KEEP ||
           inv_evicted_waits();
}

/* Before the test: the time that it takes itself, which may be long on a core that others
 * want, is not the program's. */
void shim_poll_begin(void)
{
    if (run.tests == 0)
        return;
    uint64_t gap = shim_ticks() - run.last;
    if (gap > GAP_US * shim_us && gap > (run.last - run.start) / GAP_PART && !has_slept(gap))
        end_run(run.last, false);
}

bool shim_poll_failed(void)
{
    note_end();
    if (run.tests++ == 0) {
        run.start = run.last;
        run.site = shim_site_stats_current();
    }
    uint64_t lasts = run.last - run.start;
    return is_wait() && lasts > RUN_US * shim_us && run.last >= others.next_check &&
           (lasts > PATIENT_US * shim_us || is_core_wanted() || inv_way_wanted());
}

/* So long may the caller sleep in a test (ns); 0: another thread of the process could run. */
static uint64_t longest_stay_ns(void)
{
    uint64_t quiet = check_others();
    run.checked = true;
    uint64_t need = quiet_need_ns();
    if (quiet == UINT64_MAX || others.sample.spent_ns >= need)
        return quiet;
    uint64_t rest = shim_ns_to_ticks(need - others.sample.spent_ns); /* before it could be enough */
    others.next_check = run.last + (rest > CHECK_US * shim_us ? rest : CHECK_US * shim_us);
    return 0;
}

/* Threads or implicit tasks of the OpenMP runtime lack a core: they have the caller's first. */
static bool give_way(struct shim_wait *w)
{
    if (run.last < others.next_way)
        return false;
    uint64_t start = run.last;
    uint64_t limit = others.way_ns > WAY_FIRST_US * 1000 ? others.way_ns : WAY_FIRST_US * 1000;
    bool in_time = inv_give_way(limit);
    others.way_ns = !in_time                         ? WAY_FIRST_US * 1000
                    : limit < WAY_MOST_US * 1000 / 2 ? limit * 2
                                                     : WAY_MOST_US * 1000;
    bool done = w->done(w);
    note_end();
    others.next_way = in_time ? run.last : run.last + (run.last - start);
    return done;
}

/* Others may be runnable on this core.  Two rounds: what the first one posted may be what
 * the second one completes. */
static bool yield_first(struct shim_wait *w)
{
    for (int i = 0; i < 2; i++) {
        sched_yield();
        if (w->done(w))
            return true;
    }
    return false;
}

bool shim_poll_wait(struct shim_wait *w)
{
    if (inv_way_wanted())
        return give_way(w);
    if (inv_hold == INV_HOLD_NONE)
        inv_give_way(0); /* it may have been given one */
    uint64_t longest = longest_stay_ns();
    if (!longest)
        return false;
    /* Who wants a core has threads that cannot run before we lend: a yield comes back when others
     * have computed here. */
    if (inv_process.anonymous && !inv_others_want(inv_process.table, inv_process.slot)) {
        bool done = yield_first(w);
        note_end();
        if (done || run.last - run.start < YIELD_US * shim_us)
            return done;
    }
    run.slept = true;
    if (run.stay < STAY_FIRST_US * shim_us)
        run.stay = STAY_FIRST_US * shim_us;
    uint64_t part = (run.last - run.start) / STAY_PART, most = STAY_MOST_US * shim_us;
    uint64_t unwanted = part < STAY_UNWANTED_US * shim_us ? part : STAY_UNWANTED_US * shim_us;
    uint64_t stay = is_core_wanted() ? run.stay : unwanted;
    if (stay > STAY_FIRST_US * shim_us && shim_ticks_to_ns(stay) > longest)
        stay = shim_ns_to_ticks(longest) + STAY_FIRST_US * shim_us;
    bool done = shim_wait_slices(w, run.start, stay, true);
    others.slept = true;
    run.stay = run.stay < most / 2 ? run.stay * 2 : most;
    note_end();
    return done;
}

/* If the call before did not wait, and an iteration ended there, it did so before this run. */
void shim_poll_hit(const void *call_site)
{
    if (run.tests)
        shim_workload_settle(run.start);
    shim_workload_call(call_site);
    if (run.tests)
        end_run(shim_ticks(), true);
}
