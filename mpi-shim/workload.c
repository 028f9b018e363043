/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workload.c - useful time is what lies between waits; times cores it is the workload.
 *
 * The rank announces W in cores: the core time that it used in a window over the
 * window's length, which is the same for all ranks of a job that keep in step.  A window
 * ends at the first wait at least WINDOW_US after it began, so that it covers whole
 * iterations.  rmd shares ownership out in proportion to W: imbalance that persists;
 * what comes and goes is met by lending.  Only the main thread is watched.
 */
#include "shim.h"
#include "invasive.h"

enum { WINDOW_US = 10000 };
static const double CHANGE = 0.05; /* smaller changes are not announced */

static struct {
    uint64_t last_end;     /* ticks: the last wait's end; useful time runs since then */
    uint64_t window_start; /* ticks */
    uint64_t useful, wait, waits;
    uint64_t window_useful;   /* `useful` at the window's start */
    uint64_t window_borrowed; /* the slot's borrowed_ns then */
    double smooth, announced;
} work;

/* Set in the thread that called MPI_Init. */
static __thread bool watched __attribute__((tls_model("initial-exec")));

static struct inv_counters *counters(void)
{
    return &inv_slot_at(inv_process.table, inv_process.slot)->counters;
}

static uint64_t borrowed_ns(void)
{
    return atomic_load_explicit(&counters()->borrowed_ns, memory_order_relaxed);
}

static void publish(void)
{
    struct inv_counters *c = counters();
    atomic_store_explicit(&c->useful_ns, shim_ticks_to_ns(work.useful), memory_order_relaxed);
    atomic_store_explicit(&c->wait_ns, shim_ticks_to_ns(work.wait), memory_order_relaxed);
    atomic_store_explicit(&c->waits, work.waits, memory_order_relaxed);
    shim_account_publish();
}

static void announce(double cores)
{
    work.smooth = work.smooth == 0 ? cores : (work.smooth + cores) / 2;
    double change = work.smooth - work.announced;
    if (change > CHANGE * work.announced || -change > CHANGE * work.announced) {
        inv_announce_workload(work.smooth);
        work.announced = work.smooth;
    }
}

static void new_window(uint64_t now)
{
    work.window_start = now;
    work.window_useful = work.useful;
    work.window_borrowed = borrowed_ns();
}

static void end_window(uint64_t now)
{
    double window = (double)shim_ticks_to_ns(now - work.window_start);
    double useful = (double)shim_ticks_to_ns(work.useful - work.window_useful);
    double borrowed = (double)(borrowed_ns() - work.window_borrowed);
    unsigned owned = inv_claim_now().owned_cores;
    announce((useful * (owned ? owned : 1) + borrowed) / window);
    publish();
    new_window(now);
}

void shim_workload_waited(uint64_t start, uint64_t end, bool slept)
{
    if (watched && start < work.last_end)
        return;
    shim_account_waited(start, end, slept);
    if (!watched)
        return;
    work.useful += start - work.last_end;
    work.wait += end - start;
    work.waits += slept;
    work.last_end = end;
    if (__builtin_expect(end - work.window_start > WINDOW_US * shim_us, 0))
        end_window(end);
}

void shim_workload_start(void)
{
    watched = true;
    work.last_end = shim_ticks();
    new_window(work.last_end);
}

void shim_workload_stop(void)
{
    if (!watched)
        return;
    work.useful += shim_ticks() - work.last_end;
    publish();
    shim_account_stop();
    watched = false;
}
