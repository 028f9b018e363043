/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * poll.c - a run of failed tests with next to nothing between them is a wait.
 *
 * Such a program has nothing better to do than to test again, but it may look at
 * something else between its tests, so it is never kept inside one for more than STAY_US;
 * and only while somebody wants the core.  A program that computes between its tests
 * shows it by the time between them, and is not touched.
 */
#include "shim.h"

/* Microseconds.  GAP: more than this between two tests is computing.  RUN: tests have
 * failed for this long.  Time inside a test grows from STAY_FIRST to STAY_US. */
enum { GAP_US = 5, RUN_US = 30, STAY_FIRST_US = 250, STAY_US = 2000, RUN_TESTS = 16 };

static __thread struct {
    uint64_t start, last; /* ticks: the run's first test, and the end of its latest */
    uint64_t stay;        /* how long the next stay may be */
    unsigned tests;
    bool slept;
} run __attribute__((tls_model("initial-exec")));

static void end_run(uint64_t end)
{
    if (run.tests >= RUN_TESTS)
        shim_workload_waited(run.start, end, run.slept);
    run.tests = 0;
}

static bool core_wanted(void)
{
    return inv_process.anonymous || inv_seat < 0 || inv_seat_poll() != INV_KEEP;
}

bool shim_poll_failed(void)
{
    uint64_t now = shim_ticks();
    if (run.tests == 0 || now - run.last > GAP_US * shim_us) {
        end_run(run.last);
        run.start = now;
        run.stay = STAY_FIRST_US * shim_us;
        run.slept = false;
    }
    run.tests++;
    run.last = now;
    return run.tests >= RUN_TESTS && now - run.start > RUN_US * shim_us && core_wanted();
}

/* Others may be runnable on this core: let them, before sleeping.  Two rounds, since the
 * first may only have posted what the second completes. */
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
    bool done = (inv_process.anonymous && yield_first(w)) || (run.slept = true, false);
    if (!done && (!inv_process.anonymous || shim_ticks() - run.start > 7 * RUN_US * shim_us))
        done = shim_wait_slices(w, run.stay);
    if (run.stay < STAY_US * shim_us)
        run.stay *= 2;
    run.last = shim_ticks();
    return done;
}

void shim_poll_hit(void)
{
    if (run.tests)
        end_run(shim_ticks());
}
