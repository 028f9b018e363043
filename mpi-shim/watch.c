/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * watch.c - waiting inside the MPI library's own blocking functions.
 *
 * Such a function polls until it is through, and from each poll the library calls us
 * (hook.c).  A call that is short is over before the clock has been looked at once.  One that
 * is not is treated as any wait: we spin with it, that is, return at once; yield where there
 * are more processes than cores; or lend the core and sleep a slice before we return.  From
 * one of our calls to the next the library looks at everything once, which is the look that a
 * sleeper must take between showing that it sleeps and sleeping.
 *
 * Only where no thread can be kept waiting for a lock of the library meanwhile: not with
 * MPI_THREAD_MULTIPLE.
 */
#include "shim.h"

#include <sched.h>

/* With more processes than cores: time to let the others run before we sleep. */
enum { YIELD_US = 200 };

bool shim_hooked;
__thread struct shim_watch shim_watch __attribute__((tls_model("initial-exec")));

/* The call before was left by a jump, from an error handler of the program's.  (A call within
 * a call does not get here: it passes straight through.) */
void shim_watch_abandoned(void)
{
    if (shim_watch.asleep)
        shim_sleep_end(&shim_watch.sleep);
    shim_watch.asleep = false;
}

static void ring_others(void)
{
    shim_ring_member(shim_watch.peer[0]);
    shim_ring_member(shim_watch.peer[1]);
    if (shim_watch.comm)
        shim_ring_sleepers(shim_watch.comm, shim_watch.meeting);
}

static void fall_asleep(void)
{
    ring_others();
    shim_watch.asleep = true;
    shim_sleep_begin(&shim_watch.sleep, shim_watch.comm, true, shim_watch.start);
}

/* What the call has posted so far may be what another one sleeps for. */
static void first_look_at_the_clock(void)
{
    shim_watch.start = shim_ticks();
    ring_others();
}

static void spin(void)
{
    if (shim_watch.start == 0)
        first_look_at_the_clock();
    else if (!shim_spin_on(shim_watch.site, shim_ticks() - shim_watch.start))
        fall_asleep();
}

static void yield(void)
{
    if (shim_watch.start == 0)
        first_look_at_the_clock();
    sched_yield();
    if (shim_watch.polls % SHIM_WATCH_POLLS == 0 &&
        shim_ticks() - shim_watch.start > YIELD_US * shim_us)
        fall_asleep();
}

void shim_polled(void)
{
    if (!shim_watch.site || shim_watch.frame != shim_thread.frame)
        return;
    shim_watch.polls++;
    if (shim_watch.asleep) {
        if (shim_ticks() >= shim_watch.sleep.look_until)
            shim_sleep_slice(&shim_watch.sleep);
    } else if (inv_process.anonymous || inv_seat < 0)
        yield();
    else if (shim_watch.polls % SHIM_WATCH_POLLS == 0)
        spin();
}

void shim_watch_waited(void)
{
    bool slept = shim_watch.asleep;
    if (slept)
        shim_sleep_end(&shim_watch.sleep);
    shim_watch.asleep = false;
    uint64_t end = shim_ticks();
    shim_site_learn(shim_watch.site, end - shim_watch.start);
    shim_workload_waited(shim_watch.start, end, slept);
}
