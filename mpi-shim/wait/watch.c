/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * watch.c - waiting inside the MPI library's own blocking functions.
 *
 * Such a function polls until it is complete, and the library calls the hook from each poll
 * (hook.c).  A short call is over before the clock is read once.  A longer one is treated as any
 * wait.  The hook returns at once, which is spinning; or it yields, with more processes than cores;
 * or it lends the core and sleeps a slice before it returns.  Between two calls of the hook the
 * library polls everything once.  That is the check that a sleeper must make after it has set its
 * sleep flag and before it sleeps.
 *
 * With MPI_THREAD_MULTIPLE another thread might wait for a lock of the library meanwhile, so the
 * wait engine waits instead.  Calls that it cannot split (a lock of a window, input and output)
 * only yield, with more processes than cores, in long rows of polls.
 */
#define _GNU_SOURCE
#include "mpi-shim/wait/watch.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/hook.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/site.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/poll.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/wait.h"
#include "libinvasive/process.h"

#include <sched.h>

/* Waits without a sleep after which the ranks are spread over the cores. */
enum { SPREAD_WAITS = 64 };
/* ROW_POLLS polls of one thread in less than ROW_US are a wait inside the library. */
enum { ROW_POLLS = 64, ROW_US = 100 };
/* How often a sleeper that was rung rings others during one sleep. */
enum { MOST_RINGS = 4 };
/* A sleeper to which messages arrive for so long, without a slice of sleep, is awake. */
enum { ARRIVALS_US = 200 };
/* Polls from one call of the hook to the next where only the wait engine listens. */
enum { LISTEN_POLLS = 4 };

__thread struct shim_watch shim_watch __attribute__((tls_model("initial-exec")));

/* An error handler of the program has left the thread's latest watched call by longjmp.  (A call
 * within a call passes straight through and does not get here.) */
void shim_watch_abandoned(void)
{
    if (shim_watch.asleep)
        shim_sleep_end(&shim_watch.sleep);
    shim_watch.asleep = false;
}

static void ring_others(void)
{
    shim_ring(shim_watch.peer[0]);
    shim_ring(shim_watch.peer[1]);
    if (shim_watch.comm)
        shim_ring_sleepers(shim_watch.comm, shim_watch.at_arrival);
}

static void fall_asleep(void)
{
    inv_assert(!shim_watch.asleep);
    ring_others();
    shim_watch.asleep = shim_watch.slept = true;
    shim_watch.rings = MOST_RINGS;
    shim_watch.arrivals_since = 0;
    shim_sleep_begin(&shim_watch.sleep, shim_watch.comm, true, shim_watch.start);
}

static void handle_arrival(void)
{
    if (shim_watch.start == 0)
        return;
    uint64_t now = shim_ticks();
    shim_watch.idle = now;
    if (!shim_watch.asleep)
        return;
    if (shim_watch.arrivals_since == 0)
        shim_watch.arrivals_since = now;
    if (now - shim_watch.arrivals_since > ARRIVALS_US * shim_sharing() * shim_clock.us) {
        shim_sleep_end(&shim_watch.sleep);
        shim_watch.asleep = false;
    } else if (shim_sleep_arrived(&shim_watch.sleep))
        ring_others();
}

/* After a ring the library may have answered a message and sent another one to a rank that sleeps,
 * so the other ranks are rung.  Only a few times: else two ranks that wait for a third would wake
 * each other all the time. */
static void continue_sleep(bool mpi_yields)
{
    struct shim_sleep *s = &shim_watch.sleep;
    inv_assert(shim_watch.asleep && shim_watch.rings <= MOST_RINGS);
    bool rung = s->check_until != 0; /* or something arrived */
    bool yields = inv_process.anonymous && !mpi_yields;
    /* Yield to the ranks that were rung at the same time, and to the rank that has yet to send. */
    if (shim_ticks() < s->check_until && !(yields && shim_yield_is_enough(&s->shared_at)))
        return;
    s->check_until = 0;
    if (rung && shim_watch.rings > 0) {
        shim_watch.rings--;
        ring_others();
    }
    shim_sleep_slice(s);
    shim_watch.arrivals_since = 0;
}

/* Rings the others too, since a rank may sleep for what the call has posted so far. */
static void start_clock(void)
{
    shim_watch.start = shim_watch.idle = shim_watch.shared_at = shim_ticks();
    shim_watch.slept = false;
    ring_others();
}

static void spin_in_call(void)
{
    if (shim_watch.start == 0 && shim_watch.polls < SHIM_QUICK_POLLS)
        return;
    if (shim_watch.start == 0)
        start_clock();
    else if (!shim_spin_on(shim_watch.site, shim_watch.start, shim_watch.idle))
        fall_asleep();
}

static void yield_in_call(bool mpi_yields, bool due)
{
    if (shim_watch.start == 0)
        start_clock();
    shim_site_stats_wait_lasts(shim_watch.start);
    if (shim_lends_at_once(shim_watch.site)) {
        fall_asleep();
        return;
    }
    bool enough = !mpi_yields && shim_yield_is_enough(&shim_watch.shared_at);
    if (enough || (due && shim_ticks() - shim_watch.idle > shim_yield_ticks(shim_watch.site)))
        fall_asleep();
}

/* The kernel moves only threads that wake up.  Of four ranks that yield to each other on two cores
 * it may leave three on one core for half a second, and all ranks wait for those.  So each rank
 * moves to a core of its part of the cores, and may be moved from there at once.  Ranks of neighbouring
 * numbers have the same core: they exchange most messages. */
static void spread_ranks(void)
{
    struct inv_cpus now;
    struct inv_table *t = inv_process.table;
    inv_assert(shim_world.me >= 0 && shim_world.me < shim_world.domain_ranks && inv_process.ncores > 0);
    unsigned core = (unsigned)shim_world.me * inv_process.ncores / (unsigned)shim_world.domain_ranks;
    int cpu = inv_core_at(t, core)->os_cpu;
    if (cpu < 0 || cpu >= INV_MAX_CPUS || sched_getcpu() == cpu || inv_thread_pinned() ||
        inv_cpus_get(0, &now) != 0 || !inv_cpus_has(&now, (size_t)cpu))
        return;
    if (inv_cpus_set_one(0, (size_t)cpu) == 0)
        inv_cpus_set(0, &now);
}

static void watch_poll(unsigned polls, bool mpi_yields)
{
    unsigned before = shim_watch.polls / SHIM_WATCH_POLLS;
    shim_watch.polls += polls;
    bool due = shim_watch.polls / SHIM_WATCH_POLLS != before;
    if (inv_process.anonymous || inv_hold < 0)
        yield_in_call(mpi_yields, due);
    else if (due)
        spin_in_call();
}

static unsigned listen_to_poll(unsigned polls, unsigned how)
{
    (void)polls;
    if (how & HOOK_ARRIVED)
        shim_thread.heard = true;
    return shim_thread.listening;
}

/* While the thread sleeps, the hook asks for every poll: something may arrive in any. */
unsigned shim_polled(unsigned polls, unsigned how)
{
    if (!shim_watch.site || shim_watch.frame != shim_thread.frame)
        return listen_to_poll(polls, how);
    if (how & HOOK_ARRIVED)
        handle_arrival();
    else if (shim_watch.asleep)
        continue_sleep(how & HOOK_YIELDS);
    else
        watch_poll(polls, how & HOOK_YIELDS);
    return shim_watch.asleep;
}

void shim_watch_waited(void)
{
    bool slept = shim_watch.slept;
    if (shim_watch.asleep)
        shim_sleep_end(&shim_watch.sleep);
    shim_watch.asleep = false;
    shim_watch.awake = slept || !inv_process.anonymous ? 0 : shim_watch.awake + 1;
    if (shim_watch.awake == SPREAD_WAITS) {
        shim_watch.awake = 0;
        spread_ranks();
    }
    uint64_t end = shim_ticks();
    shim_site_learn(shim_watch.site, shim_watch.start, end);
    shim_workload_waited(shim_watch.start, end, slept);
    shim_short_waits_refresh();
}

/* Yields in a row of polls, but only if one thread polls alone.  Threads that poll in turns share a
 * lock of the library.  The calling thread may hold that lock, and would keep the other threads
 * waiting while other processes compute here. */
static unsigned polled_by_threads(unsigned polls, unsigned how)
{
    static __thread struct {
        uint64_t start;
        unsigned polls;
    } row __attribute__((tls_model("initial-exec")));
    shim_thread.mpi_yields = how & HOOK_YIELDS;
    if (shim_thread.listening)
        return listen_to_poll(polls, how);
    if (how || shim_thread.testing || (row.polls += polls) < ROW_POLLS)
        return 0;
    uint64_t start = row.start, now = shim_ticks();
    if (shim_poll_is_by_one_thread(&row) && now - start < ROW_US * shim_clock.us)
        sched_yield();
    row.polls = 0;
    row.start = shim_ticks();
    return 0;
}

void shim_watch_no_more(void)
{
    shim_hook_set(inv_process.anonymous ? polled_by_threads : listen_to_poll, LISTEN_POLLS);
}

void shim_watch_set_up(bool hooked)
{
    shim_dispatcher.hooked = hooked;
    if (!hooked)
        shim_watch_no_more();
}
