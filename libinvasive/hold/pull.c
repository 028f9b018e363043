/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* pull.c - see pull.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/pull.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/process/holdings.h"

#include <errno.h>
#include <string.h>

/* Samples are PERIOD_NS apart at least, PERIOD_NS / 8 more for each thread that is sampled, and up
 * to LONGEST times that while nothing is seen.  Cores are contended when threads wait for a
 * processor for more than CONTENDED of a core between two samples, and not any more after
 * QUIET_SAMPLES samples with less than QUIET.  A thread is pulled off a core on which threads
 * waited for WAITED_NS at least. */
static const uint64_t PERIOD_NS = 10000000, WAITED_NS = 500000;
static const double CONTENDED = 0.2, QUIET = 0.02;
enum { QUIET_SAMPLES = 20, LONGEST = 32, CORES = 64 /* more are not sampled */ };

/* Only the thread that has set `sampling` reads and writes the rest, except where noted. */
static struct {
    _Atomic bool sampling;    /* acquire/release: a lock that is only tried */
    _Atomic uint64_t next_ns; /* earliest time of the next sample; written under the lock, relaxed: a hint */
    _Atomic bool contended;   /* as next_ns */
    /* By core: its holder at the last sample, for how long it had waited for a processor since it
     * began, and for how long it had since the sample before, or what is known of that */
    struct {
        int32_t tid;
        uint64_t waited_ns, between_ns;
    } cores[CORES];
    uint64_t at_ns;  /* of the last sample */
    unsigned quiet;  /* samples in sequence in which next to nothing waited */
    unsigned longer; /* the period until the next sample over the shortest one */
} seen;

/* Does another process of the domain own or hold a core? */
static bool others_have_cores(void)
{
    for (unsigned c = 0; c < inv_process.ncores; c++) {
        inv_word word = inv_core_word((int)c);
        unsigned owner = inv_word_owner(word), holder = inv_word_holder(word);
        if ((owner != inv_own_name() && owner != INV_NOBODY && owner != INV_ELSEWHERE) ||
            (holder != inv_own_name() && holder != INV_NOBODY))
            return true;
    }
    return false;
}

static unsigned cores_seen(void) { return inv_process.ncores < CORES ? inv_process.ncores : CORES; }

/* Samples all threads that hold a core.  Returns for how long they have waited for a processor
 * since the last sample; of a core that another thread holds since then, or none, half of the last
 * figure.  *threads: their number. */
static uint64_t sample_holders(unsigned *threads)
{
    uint64_t sum_ns = 0;
    *threads = 0;
    for (unsigned c = 0; c < cores_seen(); c++) {
        int32_t tid = inv_holder_of((int)c), before = seen.cores[c].tid;
        uint64_t waited_ns = tid ? inv_thread_time(tid).waited_ns : 0;
        seen.cores[c].between_ns = tid && tid == before ? inv_ns_since(seen.cores[c].waited_ns, waited_ns)
                                                        : seen.cores[c].between_ns / 2;
        sum_ns += seen.cores[c].between_ns;
        if (!tid)
            continue; /* most holders sleep for a moment only: the former one may come back */
        seen.cores[c].tid = tid;
        seen.cores[c].waited_ns = waited_ns;
        ++*threads;
    }
    return sum_ns;
}

static void sample(uint64_t now)
{
    unsigned threads;
    bool first = seen.at_ns == 0;
    double waited = (double)sample_holders(&threads) / (double)inv_ns_since(seen.at_ns, now);
    inv_assert(threads <= CORES);
    seen.quiet = waited < QUIET ? seen.quiet + 1 : 0;
    if (waited > CONTENDED && !first)
        atomic_store_explicit(&seen.contended, true, memory_order_relaxed);
    else if (seen.quiet >= QUIET_SAMPLES)
        atomic_store_explicit(&seen.contended, false, memory_order_relaxed);
    bool usual = waited < QUIET && !atomic_load_explicit(&seen.contended, memory_order_relaxed);
    if (!usual || seen.longer == 0)
        seen.longer = 1;
    else if (seen.longer < LONGEST)
        seen.longer *= 2;
    seen.at_ns = now;
    uint64_t period_ns = (PERIOD_NS + threads * PERIOD_NS / 8) * seen.longer;
    atomic_store_explicit(&seen.next_ns, now + period_ns, memory_order_relaxed);
}

/* The thread on whose core threads have waited for a processor most of late, and more than on the
 * caller's core, which the same program may use.  tid 0: there is none.  Not yet moved. */
static struct inv_pulled holder_of_most_contended(void)
{
    struct inv_pulled pulled = INV_NONE_PULLED;
    uint64_t most_ns = WAITED_NS, own_ns = 0;
    const int own_core = inv_thread_core(), own_tid = inv_own_tid();
    for (int c = 0; c < (int)cores_seen(); c++) {
        uint64_t waited_ns = seen.cores[c].between_ns;
        if (c == own_core) {
            own_ns = waited_ns;
            continue;
        }
        int32_t tid = waited_ns > most_ns ? inv_holder_of(c) : 0;
        if (tid && tid != own_tid) {
            most_ns = waited_ns;
            pulled.tid = tid;
            pulled.core = c;
        }
    }
    return most_ns > 2 * own_ns ? pulled : INV_NONE_PULLED;
}

/* Takes a sample if one is due.  Returns a thread that is to be moved here; tid 0: none. */
static struct inv_pulled find_waiting(uint64_t now, bool among_own)
{
    inv_assert(atomic_load_explicit(&seen.sampling, memory_order_relaxed));
    if (among_own || others_have_cores()) {
        atomic_store_explicit(&seen.contended, false, memory_order_relaxed);
        atomic_store_explicit(&seen.next_ns, now + PERIOD_NS, memory_order_relaxed);
        seen.at_ns = 0; /* the next sample has none to compare with */
        return INV_NONE_PULLED;
    }
    if (now >= atomic_load_explicit(&seen.next_ns, memory_order_relaxed))
        sample(now);
    return atomic_load_explicit(&seen.contended, memory_order_relaxed) ? holder_of_most_contended()
                                                                       : INV_NONE_PULLED;
}

struct inv_pulled inv_pull_waiting(bool among_own)
{
    if (inv_process.anonymous || inv_unpinned() || !inv_pinning_enabled() || inv_placed_by_kernel())
        return INV_NONE_PULLED;
    uint64_t now = inv_now_ns();
    if ((now < atomic_load_explicit(&seen.next_ns, memory_order_relaxed) &&
         !atomic_load_explicit(&seen.contended, memory_order_relaxed)) ||
        atomic_exchange_explicit(&seen.sampling, true, memory_order_acquire))
        return INV_NONE_PULLED;
    INV_UNCANCELLED;
    int saved = errno;
    struct inv_pulled pulled = find_waiting(now, among_own);
    /* Each keeps its hold: the pulled thread is not the caller, and its core not the caller's. */
    inv_assert(pulled.tid != inv_own_tid() && pulled.core < (int)inv_process.ncores);
    inv_assert(pulled.tid == 0 || pulled.core != inv_thread_core());
    if (pulled.tid && (pulled.cpu = inv_thread_move_here(pulled.tid, pulled.core)) < 0)
        pulled = INV_NONE_PULLED;
    atomic_store_explicit(&seen.sampling, false, memory_order_release);
    errno = saved;
    return pulled;
}

void inv_pull_end(const struct inv_pulled *pulled)
{
    if (pulled->tid == 0)
        return;
    int saved = errno;
    inv_assert(pulled->tid > 0 && pulled->core >= 0 && pulled->cpu >= 0); /* it has been moved */
    inv_thread_move_back(pulled->tid, pulled->core, pulled->cpu);
    errno = saved;
}

void inv_pull_forget(void)
{
    memset(&seen, 0, sizeof seen);
}
