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
 */
#include "shim.h"

/* Microseconds.  GAP: more than this between two tests is computing, and more than 1/GAP_PART of
 * the run so far, since a core may be taken from us for a moment by others.  RUN: tests have
 * failed for this long.  YIELD: with more processes than cores, time to let the others
 * run before we sleep. */
enum { GAP_US = 5, RUN_US = 30, YIELD_US = 200, PATIENT_US = 5000 };
enum { STAY_FIRST_US = 250, STAY_MOST_US = 10000, STAY_UNWANTED_US = 20000, STAY_PART = 16 };
enum { GAP_PART = 64 };
enum { RUN_TESTS = 16, RUN_NAPS = 2 };
/* A sleep is not shorter than NAP_US, and takes less than 1/NAP_PART of its time on a core, and no
 * more than NAP_CPU_US: who computes may have been waiting for its core for most of the gap. */
enum { NAP_US = 40, NAP_PART = 4, NAP_CPU_US = 50 };
/* Gaps that are looked at until one is a sleep, and gaps that are not looked at after that. */
enum { NAP_LOOKS = 4, NAP_REST = 64 };

static __thread struct {
    uint64_t start, last; /* ticks: the run's first test, and the end of its latest */
    uint64_t stay;        /* how long the next stay may be */
    uint64_t cpu_ns;      /* the thread's processor time at `last`; 0: not asked for */
    unsigned tests, naps;
    unsigned site; /* of the first one (account.h) */
    bool slept;
} run __attribute__((tls_model("initial-exec")));

/* Long gaps to look at, and to let pass before that; of all runs of the thread. */
static __thread struct {
    unsigned looks, rest;
} naps __attribute__((tls_model("initial-exec")));

/* A test has failed, or a stay has ended. */
static void note_end(void)
{
    run.last = shim_ticks();
    run.cpu_ns = naps.looks && (run.naps || run.tests < RUN_TESTS) ? shim_thread_cpu_ns() : 0;
}

/* Was the thread asleep in this gap between two tests? */
static bool napped(uint64_t gap)
{
    if (gap < NAP_US * shim_us)
        return false;
    uint64_t used = run.cpu_ns ? shim_thread_cpu_ns() - run.cpu_ns : UINT64_MAX;
    if (used < NAP_CPU_US * 1000 && used * NAP_PART < shim_ticks_to_ns(gap)) {
        naps.looks = NAP_LOOKS;
        run.naps++;
        return true;
    }
    if (run.cpu_ns && --naps.looks == 0)
        naps.rest = NAP_REST;
    else if (!run.cpu_ns && naps.rest)
        naps.rest--;
    else if (!run.cpu_ns)
        naps.looks = NAP_LOOKS;
    return false;
}

static bool is_wait(void) { return run.tests >= RUN_TESTS || run.naps >= RUN_NAPS; }

static void end_run(uint64_t end, bool hit)
{
    if (is_wait()) {
        unsigned here = shim_account_here();
        shim_account_return_to(run.site);
        shim_workload_waited(run.start, end, run.slept);
        shim_account_return_to(here);
    }
    if (run.slept && !hit)
        run.stay = 0;
    run.tests = run.naps = 0;
    run.slept = false;
}

static bool core_wanted(void)
{
    return inv_process.anonymous || inv_seat < 0 || inv_seat_poll() != INV_KEEP ||
           inv_guest_waits();
}

/* Before the test: the time that it takes itself, which may be long on a core that others
 * want, is not the program's. */
void shim_poll_begin(void)
{
    if (run.tests == 0)
        return;
    uint64_t gap = shim_ticks() - run.last;
    if (gap > GAP_US * shim_us && gap > (run.last - run.start) / GAP_PART && !napped(gap))
        end_run(run.last, false);
}

bool shim_poll_failed(void)
{
    note_end();
    if (run.tests++ == 0) {
        run.start = run.last;
        run.site = shim_account_here();
    }
    uint64_t lasts = run.last - run.start;
    return is_wait() && lasts > RUN_US * shim_us &&
           (lasts > PATIENT_US * shim_us || core_wanted());
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
    uint64_t stay = core_wanted() ? run.stay : unwanted;
    bool done = shim_wait_slices(w, run.start, stay, true);
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
