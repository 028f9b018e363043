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

/* Looks are PERIOD_NS apart at least, and PERIOD_NS / 8 for each stranger.  Strangers compute when they
 * take more than BUSY of a core between two looks, and have stopped when they take less than QUIET of
 * it at QUIET_LOOKS looks. */
static const uint64_t PERIOD_NS = 10000000;
static const double BUSY = 0.1, QUIET = 0.02;
enum { QUIET_LOOKS = 20 };

struct inv_strangers inv_strangers;
static __thread bool own_threads __attribute__((tls_model("initial-exec")));

void inv_creates_own_threads(bool own) { own_threads = own; }

/* The environment is read once: the program may change it while another thread creates one. */
bool inv_creates_strangers(void)
{
    if (own_threads)
        return false;
    if (atomic_load_explicit(&inv_strangers.asked, memory_order_relaxed) == 0) {
        const char *mode = inv_getenv("INVASIVE");
        bool asked = inv_asked() && !(mode && strcmp(mode, "off") == 0);
        atomic_store_explicit(&inv_strangers.asked, asked ? 1 : 2, memory_order_relaxed);
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

/* Threads of the program may begin regions, and join.  relaxed: a guess. */
static bool holds_core(int32_t tid)
{
    for (unsigned c = 0; c < inv_process.ncores; c++)
        if (inv_hold_is_of((int)c, tid))
            return true;
    return false;
}

/* CPU time that strangers have taken since the last look, or since they began. */
static uint64_t taken_ns(unsigned *count)
{
    uint64_t taken = 0;
    for (unsigned i = 0; i < INV_STRANGERS; i++) {
        int32_t tid = atomic_load_explicit(&inv_strangers.threads[i], memory_order_relaxed);
        uint64_t cpu = tid ? inv_thread_cpu_ns(tid) : 0;
        if (tid && cpu == 0)
            replace_stranger(tid, 0); /* it has ended in a way that we do not see */
        uint64_t before = tid == inv_strangers.last.tid[i] ? inv_strangers.last.cpu_ns[i] : 0;
        if (cpu > before && !holds_core(tid))
            taken += cpu - before;
        inv_strangers.last.tid[i] = tid;
        inv_strangers.last.cpu_ns[i] = cpu;
        *count += tid != 0;
    }
    return taken;
}

static void decide_placement(double part)
{
    bool by_kernel = inv_placed_by_kernel();
    inv_assert(part >= 0);
    inv_assert(atomic_load_explicit(&inv_strangers.looking, memory_order_relaxed)); /* by the caller */
    inv_strangers.last.quiet = part < QUIET ? inv_strangers.last.quiet + 1 : 0;
    if (!by_kernel && part > BUSY)
        inv_place_by_kernel(true);
    else if (by_kernel && inv_strangers.last.quiet >= QUIET_LOOKS)
        inv_place_by_kernel(false);
}

void inv_strangers_look(void)
{
    uint64_t now = inv_now_ns();
    if (now < atomic_load_explicit(&inv_strangers.next_ns, memory_order_relaxed) ||
        inv_process.anonymous || inv_unpinned() || !inv_threads_are_bound() ||
        atomic_exchange_explicit(&inv_strangers.looking, true, memory_order_acquire))
        return;
    INV_UNCANCELLED;
    int saved = errno;
    unsigned count = 0;
    uint64_t taken = taken_ns(&count);
    inv_assert(count <= INV_STRANGERS);
    if (inv_strangers.last.at_ns)
        decide_placement((double)taken / (double)(now - inv_strangers.last.at_ns));
    inv_strangers.last.at_ns = now;
    atomic_store_explicit(&inv_strangers.next_ns, now + PERIOD_NS + count * PERIOD_NS / 8,
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
