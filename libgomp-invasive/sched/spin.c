/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spin.c - how long a thread that waits keeps its core busy: the idle policy, all of it.
 *
 * Managed: the core's word says whether another process wants the core.  A thread spins on the core
 * that it holds only while neither another thread of this process nor another process has a use for
 * it; then it gives the hold up.  `invade --tune` changes how long (inv_tuned_spin).
 *
 * Unmanaged: only the kernel knows whether another thread has a use for the core.  After some
 * microseconds the thread yields now and then.  If a yield takes long and the kernel has counted a
 * switch, another thread has run.  If that happens several times in sequence, threads share the
 * core: then the thread sleeps, and the kernel wakes it on an idle core if there is one.  (Two
 * threads of a team that only yielded would stay on one core beside an idle one: the kernel does
 * not move a thread that has just run.)
 *
 * With more threads than processors the thread yields from the beginning.  The thread that it waits
 * for is most likely next on this core, and a yield costs half of a sleep and a wake.  If yields
 * take milliseconds, a thread of another program computes on the core.  Then the thread sleeps,
 * since a sleeper comes back sooner than a thread that yields.
 *
 * OMP_WAIT_POLICY and GOMP_SPINCOUNT are hints.  With `passive` a thread does not spin (but yields
 * where threads are more than processors), with `active` it never sleeps while no other
 * thread runs on its core, and a count limits the time.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "spin.h"
#include "cores.h"
#include <libinvasive/base/futex.h>
#include <sys/resource.h>

enum {
    SPIN_KEEP_NS = 1000000, /* managed: the core is not wanted */
    SPIN_KEEP_MOST_NS = 5000000, /* the same if the last such wait has ended within this time */
    SPIN_WANTED_NS = 20000, /* it is wanted: about the cost of giving it and getting it back */
    SPIN_BORROWED_NS = 50000, /* it is not wanted, but borrowed */
    SPIN_YIELD_NS = 5000,   /* then it yields to threads that the kernel has put on the core, */
    SPIN_YIELD_MOST_NS = 100000, /* ... later, up to this, on an own core where there are none */
    INTERRUPTED_NS = 100000, /* a gap as long between two looks shows that another thread has run */
    STEAL_AFTER_NS = 5000,  /* then it takes what waits for other cores of the process */
    TRIGGERS_EVERY = 8,     /* pauses between two tests of MPI requests (triggers.h) */
    POLL_EVERY = 32,        /* pauses between two looks at the clock and the table */
    YIELD_NOTICED_NS = 1200, /* a yield this long may have let another thread run */
    YIELD_LONG_NS = 1000000, /* ... one that computes, with a time slice of its own */
    NOTICED_YIELDS = 3,     /* noticed yields in sequence after which the core counts as shared: */
    SHARED_SLEEPS = 8,      /* waits in which it then sleeps at once, before it spins again */
    CORUNNER_SLEEPS = 250,  /* the same after a long yield, which costs that much more; */
    CORUNNER_WORTH = 16,    /* ... for at most so many times the length of that yield; */
    CORUNNER_DOUBLINGS = 4, /* ... doubled so often, once for each long yield that follows */
    CORUNNER_GONE_NS = 100000000, /* after this time without one the other program counts as gone */
    YIELD_MOST = 32,      /* yields in a wait, with more threads of the process than processors */
    YIELD_WORTH = 8,      /* yields that cost as much as a sleep and a wake */
    YIELD_PROBE = 32,     /* if yields were not worth it: one of so many waits tries again */
    YIELD_PLACE = 256,    /* one of so many waits sleeps without a yield (is_placed_anew) */
    YIELD_LOOKS = 4,      /* looks before each yield */
    NS_PER_COUNT = 10,      /* of GOMP_SPINCOUNT */
};

/* --- other threads on the core */

bool gomp_yield_was_long (void)
{
    uint64_t before = inv_now_ns();
    inv_kernel_yield();
    return inv_now_ns() - before > YIELD_LONG_NS;
}

/* What this thread knows of other threads on its core: the number of noticed yields in sequence.
 * From NOTICED_YIELDS on: that, plus the number of waits in which it is to sleep at once. */
static __thread unsigned short core_shared __attribute__((tls_model("initial-exec"), used));
#define core_shared GOMP_OWN(core_shared)
/* Long yields, each at most CORUNNER_GONE_NS after the sleeps for the one before.  A single one may
 * be due to a daemon that is gone again, several to a program that stays. */
static __thread unsigned char corunners __attribute__((tls_model("initial-exec"), used));
/* Time from which on the thread spins again after the last long yield, however few waits there
 * were. */
static __thread uint64_t corunner_until_ns __attribute__((tls_model("initial-exec"), used));
#define corunners GOMP_OWN(corunners)
#define corunner_until_ns GOMP_OWN(corunner_until_ns)

static void record_corunner (uint64_t now, uint64_t took)
{
    bool stays = now < corunner_until_ns + CORUNNER_GONE_NS;
    corunners = stays ? corunners + (corunners < CORUNNER_DOUBLINGS) : 0;
    corunner_until_ns = now + (CORUNNER_WORTH * took << corunners);
    core_shared = (unsigned short)(NOTICED_YIELDS + (CORUNNER_SLEEPS << corunners));
}

/* The kernel's count of involuntary switches away from this thread, when was_switched looked
 * last. */
static __thread long switches_seen __attribute__((tls_model("initial-exec"), used));
#define switches_seen GOMP_OWN(switches_seen)

/* Has the kernel let another thread run in place of this one since the last call? */
static bool was_switched (void)
{
    struct rusage own;
    if (getrusage(RUSAGE_THREAD, &own) != 0)
        return true;
    bool switched = own.ru_nivcsw != switches_seen;
    switches_seen = own.ru_nivcsw;
    return switched;
}

/* Yield, and learn from it.  True: the core is shared.  (Only the yield is timed: what callers look
 * at before may take as long, where many cores write there.  On virtual processors a yield may take
 * long by itself, so the kernel must have counted a switch, too.) */
static bool yield_shared (void)
{
    uint64_t before = inv_now_ns();
    inv_kernel_yield();
    uint64_t now = inv_now_ns(), took = now - before;
    /* On emulated cores the threads of the process itself take turns on a processor. */
    bool real = !(inv_managed() && inv_process.emulated);
    core_shared = real && took > YIELD_NOTICED_NS && was_switched() ? core_shared + 1 : 0;
    if (core_shared > 0 && took > YIELD_LONG_NS)
        record_corunner(now, took);
    else if (core_shared >= NOTICED_YIELDS)
        core_shared = NOTICED_YIELDS + SHARED_SLEEPS;
    return core_shared >= NOTICED_YIELDS;
}

/* Is this one of the waits in which the thread is to sleep at once?  Counts it. */
static bool sleep_at_once (void)
{
    if (core_shared < NOTICED_YIELDS)
        return false;
    bool corunner = core_shared > NOTICED_YIELDS + SHARED_SLEEPS;
    if (--core_shared < NOTICED_YIELDS || (corunner && inv_now_ns() > corunner_until_ns))
        core_shared = 0;
    return core_shared > 0;
}

/* --- managed, on a core that the thread holds */

/* What a thread that idles has learned. */
static __thread struct {
    /* How long it idles on a core of the process's own that is not wanted: SPIN_KEEP_NS, or
     * SPIN_KEEP_MOST_NS if the last wait in which it slept was over within that time. */
    uint64_t keep_ns;
    uint64_t since_ns; /* start of its wait, if it has idled for keep_ns and is to sleep; else 0 */
    uint64_t yield_ns;  /* how long it idles on such a core before it yields */
    uint64_t looked_ns; /* when it looked at the clock last in this wait; 0: not yet */
    bool yields;        /* it has yielded in this wait */
} idle_own __attribute__((tls_model("initial-exec"), used)) =
    {.keep_ns = SPIN_KEEP_NS, .yield_ns = SPIN_YIELD_NS};
#define idle_own GOMP_OWN(idle_own)

void gomp_idle_slept (void)
{
    idle_own.yield_ns = SPIN_YIELD_NS; /* the core may be shared with another thread now */
    if (idle_own.since_ns == 0)
        return;
    bool soon = inv_now_ns() - idle_own.since_ns < SPIN_KEEP_MOST_NS;
    idle_own.keep_ns = soon ? SPIN_KEEP_MOST_NS : SPIN_KEEP_NS;
    idle_own.since_ns = 0;
}

void gomp_idle_skipped (void)
{
    idle_own.since_ns = 0;
}

/* Yields to other threads that the kernel has put on the core.  Later in the wait, and later each
 * time, while there are none: a yield takes as long as a short region, and work that comes
 * meanwhile waits for its end.  own_unwanted: the core is the process's own, and no process asks
 * for it.  True: another program uses the core, too. */
static bool yields_to_corunner (uint64_t start, uint64_t now, bool own_unwanted)
{
    bool interrupted = idle_own.looked_ns > 0 && now - idle_own.looked_ns > INTERRUPTED_NS;
    idle_own.looked_ns = now;
    if (!own_unwanted || interrupted || core_shared > 0)
        idle_own.yield_ns = SPIN_YIELD_NS;
    if (now - start < idle_own.yield_ns)
        return false;
    if (!idle_own.yields)
        was_switched(); /* counts switches from here on */
    idle_own.yields = true;
    bool shared = yield_shared();
    if (idle_own.yield_ns < SPIN_YIELD_MOST_NS)
        idle_own.yield_ns *= 2;
    return shared && core_shared > NOTICED_YIELDS + SHARED_SLEEPS;
}

bool gomp_leaves_at_once (void)
{
    return gomp_spin_count_var == 0 || /* OMP_WAIT_POLICY=passive */
           atomic_load_explicit(&inv_waits.threads, memory_order_relaxed) > 0;
}

/* Should a thread that idles on the core that it holds go on doing so?  Else *end says why not.
 * Looks at the clock and the table; called every POLL_EVERY pauses. */
static bool may_idle (uint64_t start, enum gomp_idle_end *end)
{
    enum inv_verdict verdict = inv_hold_poll();
    *end = GOMP_IDLE_LONG;
    if (verdict == INV_GIVE || verdict == INV_LOST)
        return false;
    uint64_t now = inv_now_ns(), idle = now - start;
    if (gomp_leaves_at_once())
        return false;
    if (idle > STEAL_AFTER_NS && gomp_threads_queued()) {
        *end = GOMP_IDLE_NEEDED;
        return false;
    }
    /* A thread that lent a core may have been preempted, when this thread woke up, before it slept.
     * It has to run before it can ask for the core, so this thread yields to it. */
    bool owned = inv_hold_is_owned();
    if (yields_to_corunner(start, now, owned && verdict == INV_KEEP))
        return false;
    bool holds = owned && now < atomic_load_explicit(&inv_waits.holds_until_ns, memory_order_relaxed);
    if (verdict == INV_WANTED)
        return idle < inv_tuned_spin(holds ? SPIN_KEEP_NS : SPIN_WANTED_NS);
    if (!owned)
        return idle < inv_tuned_spin(SPIN_BORROWED_NS);
    if (idle < inv_tuned_spin(idle_own.keep_ns))
        return true;
    idle_own.since_ns = start;
    return false;
}

enum gomp_idle_end gomp_idle_spin (bool (*ready) (void *), void *arg)
{
    uint64_t start = 0;
    bool hurry = sleep_at_once();
    idle_own.since_ns = idle_own.looked_ns = 0;
    idle_own.yields = false;
    for (unsigned i = 1;; i++) {
        if (ready(arg))
            return GOMP_IDLE_READY;
        if (gomp_core_needed())
            return GOMP_IDLE_NEEDED;
        if (i % TRIGGERS_EVERY == 0)
            inv_triggers_test(INV_AT_IDLE);
        inv_cpu_relax();
        if (i % POLL_EVERY)
            continue;
        if (start == 0)
            start = inv_now_ns();
        enum gomp_idle_end end = GOMP_IDLE_LONG;
        if (hurry || !may_idle(start, &end))
            return end;
    }
}

/* --- unmanaged */

static bool more_threads_than_cpus (void)
{
    return __atomic_load_n(&gomp_managed_threads, MEMMODEL_RELAXED) > gomp_available_cpus;
}

static uint64_t longest_spin_ns (void)
{
    return gomp_spin_count_var > UINT64_MAX / NS_PER_COUNT ? UINT64_MAX
                                                           : gomp_spin_count_var * NS_PER_COUNT;
}

/* How many yields in a wait have been worth it lately; waits in which none was made. */
static __thread unsigned char yields_worth_it __attribute__((tls_model("initial-exec"), used)) =
    YIELD_MOST;
static __thread unsigned char waits_without_yield __attribute__((tls_model("initial-exec"), used));
#define yields_worth_it GOMP_OWN(yields_worth_it)
#define waits_without_yield GOMP_OWN(waits_without_yield)

static unsigned yields_to_try (void)
{
    if (yields_worth_it > 0 || ++waits_without_yield % YIELD_PROBE != 0)
        return yields_worth_it;
    return YIELD_WORTH;
}

static void learn_yields (bool worth)
{
    if (!worth)
        yields_worth_it /= 2;
    else if (yields_worth_it < YIELD_MOST)
        yields_worth_it += YIELD_WORTH;
}

/* Is the thread to sleep in this wait, so that the kernel wakes it on an idle core?  The kernel
 * does not move a thread that yields: three of four may share one of two cores for long, while the
 * fourth sleeps for most of the time. */
static bool is_placed_anew (void)
{
    static __thread unsigned short waits __attribute__((tls_model("initial-exec")));
    return ++waits % YIELD_PLACE == 0;
}

static bool spin_oversubscribed (bool (*ready) (void *), void *arg)
{
    if (is_placed_anew())
        return ready(arg);
    unsigned patience = yields_to_try();
    for (unsigned i = 0; i < patience; i++) {
        for (unsigned k = 0; k < YIELD_LOOKS; k++) {
            if (ready(arg)) {
                if (i > 0)
                    learn_yields(i <= YIELD_WORTH);
                return true;
            }
            inv_cpu_relax();
        }
        inv_triggers_test(INV_AT_IDLE);
        if (gomp_yield_was_long())
            break;
    }
    if (patience > 0)
        learn_yields(false);
    return ready(arg);
}

static bool spin_undersubscribed (bool (*ready) (void *), void *arg)
{
    uint64_t start = 0, limit = longest_spin_ns();
    if (limit == 0)
        return ready(arg);
    bool hurry = sleep_at_once();
    for (unsigned i = 1;; i++) {
        if (ready(arg))
            return true;
        inv_cpu_relax();
        if (i % TRIGGERS_EVERY == 0)
            inv_triggers_test(INV_AT_IDLE);
        if (i % POLL_EVERY)
            continue;
        uint64_t now = inv_now_ns();
        if (start == 0) {
            start = now;
            was_switched();
        }
        if (hurry || now - start > limit)
            return false;
        if (now - start > SPIN_YIELD_NS && yield_shared())
            return ready(arg);
    }
}

static bool spin_unmanaged (bool (*ready) (void *), void *arg)
{
    return more_threads_than_cpus() ? spin_oversubscribed(ready, arg)
                                    : spin_undersubscribed(ready, arg);
}

/* Managed, without a hold: the thread is on a core that another one holds, so it spins only
 * briefly. */
static bool spin_unheld (bool (*ready) (void *), void *arg)
{
    idle_own.since_ns = 0;
    for (unsigned i = 0; i < 100; i++) {
        if (ready(arg))
            return true;
        inv_cpu_relax();
    }
    return false;
}

/* --- for all */

bool gomp_spin_until (bool (*ready) (void *), void *arg)
{
    if (!inv_managed())
        return spin_unmanaged(ready, arg);
    return inv_hold == INV_HOLD_NONE ? spin_unheld(ready, arg)
                                     : gomp_idle_spin(ready, arg) == GOMP_IDLE_READY;
}
