/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * poll.c - a run of failed tests with next to nothing between them is a wait.
 *
 * Such a program has nothing better to do than to test again, but it may look at
 * something else between its tests, so it is kept inside one for a bounded time, and only
 * while somebody wants the core.  Getting the core back costs its borrower a turn, so the
 * time doubles as long as the runs end with a test that succeeds, up to STAY_MOST_US; a
 * run that ends otherwise, with something else to do, starts it over.  A program that
 * computes between its tests shows it by the time between them, and is not touched.
 */
#include "shim.h"

/* Microseconds.  GAP: more than this between two tests is computing.  RUN: tests have
 * failed for this long.  YIELD: with more processes than cores, time to let the others
 * run before we sleep. */
enum { GAP_US = 5, RUN_US = 30, YIELD_US = 200, STAY_FIRST_US = 250, STAY_MOST_US = 10000 };
enum { RUN_TESTS = 16 };

static __thread struct {
    uint64_t start, last; /* ticks: the run's first test, and the end of its latest */
    uint64_t stay;        /* how long the next stay may be */
    unsigned tests;
    unsigned site; /* of the first one (account.h) */
    bool slept;
} run __attribute__((tls_model("initial-exec")));

static void end_run(uint64_t end, bool hit)
{
    if (run.tests >= RUN_TESTS) {
        unsigned here = shim_account_here();
        shim_account_return_to(run.site);
        shim_workload_waited(run.start, end, run.slept);
        shim_account_return_to(here);
    }
    if (run.slept && !hit)
        run.stay = 0;
    run.tests = 0;
    run.slept = false;
}

static bool core_wanted(void)
{
    return inv_process.anonymous || inv_seat < 0 || inv_seat_poll() != INV_KEEP;
}

bool shim_poll_failed(void)
{
    uint64_t now = shim_ticks();
    if (run.tests == 0 || now - run.last > GAP_US * shim_us) {
        end_run(run.last, false);
        run.start = now;
        run.site = shim_account_here();
    }
    run.tests++;
    run.last = now;
    return run.tests >= RUN_TESTS && now - run.start > RUN_US * shim_us && core_wanted();
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
    if (inv_process.anonymous) {
        bool done = yield_first(w);
        run.last = shim_ticks();
        if (done || run.last - run.start < YIELD_US * shim_us)
            return done;
    }
    run.slept = true;
    shim_account_sleeps(run.start);
    if (run.stay < STAY_FIRST_US * shim_us)
        run.stay = STAY_FIRST_US * shim_us;
    bool done = shim_wait_slices(w, run.stay);
    shim_account_woke();
    if (run.stay < STAY_MOST_US * shim_us / 2)
        run.stay *= 2;
    else
        run.stay = STAY_MOST_US * shim_us;
    run.last = shim_ticks();
    return done;
}

void shim_poll_hit(void)
{
    if (run.tests)
        end_run(shim_ticks(), true);
}
