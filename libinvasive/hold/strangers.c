/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* strangers.c - see strangers.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/strangers.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/process/holdings.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Samples are PERIOD_NS apart at least, and PERIOD_NS / 8 more for each stranger.  Strangers
 * compute when they use more than BUSY of a core between two samples; or when they run or wait for
 * a processor for more than WANTING of that time, since a stranger that yields beside a pinned
 * thread which spins may use next to nothing.  (A stranger that often wakes up for a moment waits
 * as well, but not all the time.) Strangers have stopped when they use and wait for less than QUIET
 * of a core in QUIET_LOOKS samples. */
static const uint64_t PERIOD_NS = 10000000;
static const double BUSY = 0.1, WANTING = 0.9, QUIET = 0.02;
enum { QUIET_LOOKS = 20 };

struct inv_strangers inv_strangers;
static __thread bool own_threads __attribute__((tls_model("initial-exec")));

void inv_creates_own_threads(bool own) { own_threads = own; }

/* The environment is read once: the program may change it while another thread creates a thread. */
bool inv_creates_strangers(void)
{
    if (own_threads)
        return false;
    if (atomic_load_explicit(&inv_strangers.asked, memory_order_relaxed) == 0) {
        atomic_store_explicit(&inv_strangers.asked, inv_asked() && !inv_switched_off() ? 1 : 2, memory_order_relaxed);
    }
    return atomic_load_explicit(&inv_strangers.asked, memory_order_relaxed) == 1;
}

/* Not the cached id of a thread that holds a core: a child of a fork would have it, too. */
static int32_t own_tid(void) { return (int32_t)syscall(SYS_gettid); }

static void replace_stranger(int32_t from, int32_t to)
{
    for (unsigned i = 0; i < INV_STRANGERS; i++) {
        int32_t expected = from;
        if (atomic_load_explicit(&inv_strangers.threads[i], memory_order_relaxed) == from &&
            atomic_compare_exchange_strong_explicit(&inv_strangers.threads[i], &expected, to,
                                                    memory_order_relaxed, memory_order_relaxed))
            return;
    }
}

void inv_stranger_begins(void)
{
    replace_stranger(0, own_tid());
    atomic_fetch_add_explicit(&inv_strangers.count, 1, memory_order_relaxed);
}

void inv_stranger_ends(void) { replace_stranger(own_tid(), 0); }

/* Does this thread hold a core?  A thread of the program may begin a region and so join.  relaxed:
 * a guess. */
static bool holds_core(int32_t tid)
{
    for (unsigned c = 0; c < inv_process.ncores; c++)
        if (inv_hold_is_of((int)c, tid))
            return true;
    return false;
}

/* Processor time of all strangers between two samples, or since they began. */
struct demand {
    uint64_t taken_ns;  /* that they have used */
    uint64_t wanted_ns; /* the same and that for which they waited for a processor */
    unsigned strangers; /* their number */
};

static struct demand demand_since_last(void)
{
    struct demand sum = {0, 0, 0};
    for (unsigned i = 0; i < INV_STRANGERS; i++) {
        int32_t tid = atomic_load_explicit(&inv_strangers.threads[i], memory_order_relaxed);
        struct inv_thread_time now = tid ? inv_thread_time(tid) : (struct inv_thread_time){0, 0};
        if (tid && now.ran_ns == 0)
            replace_stranger(tid, 0); /* it has ended without inv_stranger_ends */
        struct inv_seen_stranger *last = &inv_strangers.last.of[i];
        struct inv_thread_time before = tid == last->tid ? last->time : (struct inv_thread_time){0, 0};
        if (!holds_core(tid)) {
            sum.taken_ns += inv_ns_since(before.ran_ns, now.ran_ns);
            sum.wanted_ns += inv_ns_since(before.ran_ns + before.waited_ns, now.ran_ns + now.waited_ns);
        }
        *last = (struct inv_seen_stranger){tid, now};
        sum.strangers += tid != 0;
    }
    return sum;
}

/* taken, wanted: as in struct demand, in cores */
static void decide_placement(double taken, double wanted)
{
    bool by_kernel = inv_placed_by_kernel();
    inv_assert(taken >= 0 && wanted >= 0);
    inv_assert(atomic_load_explicit(&inv_strangers.looking, memory_order_relaxed)); /* by the caller */
    inv_strangers.last.quiet = wanted < QUIET ? inv_strangers.last.quiet + 1 : 0;
    if (!by_kernel && (taken > BUSY || wanted > WANTING))
        inv_place_by_kernel(true);
    else if (by_kernel && inv_strangers.last.quiet >= QUIET_LOOKS)
        inv_place_by_kernel(false);
}

void inv_strangers_sample(void)
{
    uint64_t now = inv_now_ns();
    if (now < atomic_load_explicit(&inv_strangers.next_ns, memory_order_relaxed) ||
        inv_process.anonymous || inv_unpinned() || !inv_pinning_enabled() ||
        atomic_exchange_explicit(&inv_strangers.looking, true, memory_order_acquire))
        return;
    INV_UNCANCELLED;
    int saved = errno;
    struct demand demand = demand_since_last();
    inv_assert(demand.strangers <= INV_STRANGERS);
    double passed_ns = (double)(now - inv_strangers.last.at_ns);
    if (inv_strangers.last.at_ns)
        decide_placement((double)demand.taken_ns / passed_ns, (double)demand.wanted_ns / passed_ns);
    inv_strangers.last.at_ns = now;
    atomic_store_explicit(&inv_strangers.next_ns, now + PERIOD_NS + demand.strangers * PERIOD_NS / 8,
                          memory_order_relaxed);
    atomic_store_explicit(&inv_strangers.looking, false, memory_order_release);
    errno = saved;
}

void inv_strangers_forget(void)
{
    memset(inv_strangers.threads, 0, sizeof inv_strangers.threads);
    memset(&inv_strangers.last, 0, sizeof inv_strangers.last);
    atomic_store(&inv_strangers.count, 0);
    atomic_store(&inv_strangers.next_ns, 0);
    atomic_store(&inv_strangers.looking, false);
}
