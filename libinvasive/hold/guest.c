/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* guest.c - see guest.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/guest.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/process/holdings.h"

#include <errno.h>
#include <string.h>

/* Samples are PERIOD_NS apart at least, PERIOD_NS / 8 more for each thread that is looked at, and up
 * to LONGEST times that while nothing is seen.  Cores are crowded when threads wait for a processor
 * for more than CROWDED of a core between two samples, and not any more after QUIET_LOOKS samples
 * with less than QUIET.  A guest's core is one on which threads waited for WAITED_NS at least. */
static const uint64_t PERIOD_NS = 10000000, WAITED_NS = 500000;
static const double CROWDED = 0.2, QUIET = 0.02;
enum { QUIET_LOOKS = 20, LONGEST = 32, CORES = 64 /* more are not looked at */ };

/* Only the thread that has set `looking` reads and writes the rest, except where noted. */
static struct {
    _Atomic bool looking;     /* acquire/release: a lock that is only tried */
    _Atomic uint64_t next_ns; /* earliest time of the next sample; written under the lock, relaxed: a hint */
    _Atomic bool crowded;     /* as next_ns */
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

static uint64_t since(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

/* Does no other process of the domain own or hold a core? */
static bool is_alone(void)
{
    for (unsigned c = 0; c < inv_process.ncores; c++) {
        inv_word word = inv_core_word((int)c);
        unsigned owner = inv_word_owner(word), holder = inv_word_holder(word);
        if ((owner != inv_own_name() && owner != INV_NOBODY && owner != INV_ELSEWHERE) ||
            (holder != inv_own_name() && holder != INV_NOBODY))
            return false;
    }
    return true;
}

static unsigned cores_seen(void) { return inv_process.ncores < CORES ? inv_process.ncores : CORES; }

static int32_t holder_of(unsigned core)
{
    int32_t tid = atomic_load_explicit(&inv_core_at(inv_process.table, core)->holder_tid, memory_order_relaxed);
    return inv_core_is_held((int)core) ? tid : 0;
}

/* Looks at all threads that hold a core.  Returns for how long they have waited for a processor since
 * the last sample; of a core that another thread holds since then, or none, half of the last figure.
 * *threads: their number. */
static uint64_t look_at_holders(unsigned *threads)
{
    uint64_t sum_ns = 0;
    *threads = 0;
    for (unsigned c = 0; c < cores_seen(); c++) {
        int32_t tid = holder_of(c);
        if (tid > 0) {
            uint64_t waited_ns = inv_thread_time(tid).waited_ns;
            bool same = tid == seen.cores[c].tid;
            seen.cores[c].between_ns = same ? since(seen.cores[c].waited_ns, waited_ns) : seen.cores[c].between_ns / 2;
            seen.cores[c].tid = tid;
            seen.cores[c].waited_ns = waited_ns;
            ++*threads;
        } else
            seen.cores[c].between_ns /= 2;
        sum_ns += seen.cores[c].between_ns;
    }
    return sum_ns;
}

static void sample(uint64_t now)
{
    unsigned threads;
    bool first = seen.at_ns == 0;
    double waited = (double)look_at_holders(&threads) / (double)since(seen.at_ns, now);
    inv_assert(threads <= CORES);
    seen.quiet = waited < QUIET ? seen.quiet + 1 : 0;
    if (waited > CROWDED && !first)
        atomic_store_explicit(&seen.crowded, true, memory_order_relaxed);
    else if (seen.quiet >= QUIET_LOOKS)
        atomic_store_explicit(&seen.crowded, false, memory_order_relaxed);
    bool usual = waited < QUIET && !atomic_load_explicit(&seen.crowded, memory_order_relaxed);
    seen.longer = usual && seen.longer < LONGEST ? 2 * seen.longer : seen.longer;
    if (!usual || seen.longer == 0)
        seen.longer = 1;
    seen.at_ns = now;
    uint64_t period_ns = (PERIOD_NS + threads * PERIOD_NS / 8) * seen.longer;
    atomic_store_explicit(&seen.next_ns, now + period_ns, memory_order_relaxed);
}

/* The core whose holders, not the caller, have waited for a processor most of late, and more than on
 * the caller's core, which the same program may use.  INV_NO_CORE: there is none. */
static int most_crowded(void)
{
    uint64_t most_ns = WAITED_NS, own_ns = 0;
    int core = INV_NO_CORE;
    for (unsigned c = 0; c < cores_seen(); c++) {
        uint64_t waited_ns = seen.cores[c].between_ns;
        int32_t tid = holder_of(c);
        if ((int)c == inv_thread_core())
            own_ns = waited_ns;
        else if (waited_ns > most_ns && tid > 0 && tid != inv_own_tid()) {
            most_ns = waited_ns;
            core = (int)c;
        }
    }
    return most_ns > 2 * own_ns ? core : INV_NO_CORE;
}

static bool look(uint64_t now, struct inv_guest *guest)
{
    if (!is_alone()) {
        atomic_store_explicit(&seen.crowded, false, memory_order_relaxed);
        atomic_store_explicit(&seen.next_ns, now + PERIOD_NS, memory_order_relaxed);
        seen.at_ns = 0; /* the next sample has none to compare with */
        return false;
    }
    if (now >= atomic_load_explicit(&seen.next_ns, memory_order_relaxed))
        sample(now);
    if (!atomic_load_explicit(&seen.crowded, memory_order_relaxed))
        return false;
    guest->core = most_crowded();
    if (guest->core == INV_NO_CORE)
        return false;
    guest->tid = holder_of((unsigned)guest->core);
    return guest->tid > 0;
}

struct inv_guest inv_guest_take_in(void)
{
    struct inv_guest guest = INV_NO_GUEST;
    if (inv_process.anonymous || inv_unpinned() || !inv_threads_are_bound() || inv_placed_by_kernel())
        return guest;
    uint64_t now = inv_now_ns();
    if ((now < atomic_load_explicit(&seen.next_ns, memory_order_relaxed) &&
         !atomic_load_explicit(&seen.crowded, memory_order_relaxed)) ||
        atomic_exchange_explicit(&seen.looking, true, memory_order_acquire))
        return guest;
    INV_UNCANCELLED;
    int saved = errno;
    if (look(now, &guest) && (guest.cpu = inv_thread_move_here(guest.tid, guest.core)) < 0)
        guest = INV_NO_GUEST;
    atomic_store_explicit(&seen.looking, false, memory_order_release);
    errno = saved;
    return guest;
}

void inv_guest_leaves(const struct inv_guest *guest)
{
    if (guest->tid == 0 || !inv_hold_is_of(guest->core, guest->tid))
        return;
    int saved = errno;
    inv_thread_move_back(guest->tid, guest->core, guest->cpu);
    errno = saved;
}

void inv_guests_forget(void)
{
    memset(&seen, 0, sizeof seen);
}
