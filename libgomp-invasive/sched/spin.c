/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * spin.c - how long a thread that waits keeps its core busy: the idle policy, all of it.
 *
 * Managed: the core's word says whether another process wants the core.  A thread spins on the core
 * that it holds only while neither another thread of this process nor another process has a use for
 * it; then it gives the hold up.
 *
 * Unmanaged: only the kernel knows.  After some microseconds the thread yields now and then: a
 * yield that comes back late may have let another thread run, which the kernel has counted then.
 * When that happens again and again the threads share a core: it sleeps, and the kernel wakes it
 * on an idle core if there is one.  (To go on yielding would keep two threads of a team on one core
 * beside an idle one: the kernel does not move a thread that has just run.)
 *
 * With more threads than processors it yields from the beginning: the thread that it waits for is
 * most likely next on this core, and a yield costs half of a sleep and a wake.  Unless yields take
 * milliseconds: then a thread of another program computes on the core, and a thread that sleeps
 * comes back sooner than one that yields.
 *
 * OMP_WAIT_POLICY and GOMP_SPINCOUNT are hints: passive does not spin (but yields where that serves
 * our own threads), active never sleeps when it is alone on its core, a count limits the time.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "spin.h"
#include "cores.h"
#include <libinvasive/base/futex.h>
#include <sys/resource.h>

enum {
    SPIN_KEEP_NS = 1000000, /* managed: the core is not wanted */
    SPIN_KEEP_MOST_NS = 5000000, /* the same where such waits have ended within this time */
    SPIN_WANTED_NS = 20000, /* it is wanted: about the cost of giving it and getting it back */
    SPIN_BORROWED_NS = 50000, /* it is not wanted, but borrowed */
    SPIN_ALONE_NS = 5000,   /* from here on let threads run that the kernel has put here, */
    SPIN_ALONE_MOST_NS = 100000, /* ... or from here on, on an own core on which there have been none: */
    INTERRUPTED_NS = 100000,     /* no pause has been as long as this */
    STEAL_AFTER_NS = 5000,  /* ... and take what waits for other cores of ours */
    POLL_EVERY = 32,        /* pauses between two looks at the clock and the table */
    YIELD_NOTICED_NS = 1200, /* a yield this long may have let another thread run */
    YIELD_LONG_NS = 1000000, /* ... one that computes, with a time slice of its own */
    NOTICED_YIELDS = 3,     /* so many noticed one after the other: the core is shared */
    SHARED_SLEEPS = 8,      /* then sleep in so many waits before it is tried again, */
    CORUNNER_SLEEPS = 250,  /* and in so many after a long one, which costs that much more, */
    CORUNNER_WORTH = 16,    /* ... but not for longer than so many times the length of that yield; */
    CORUNNER_DOUBLINGS = 4, /* twice as many after each that follows */
    CORUNNER_GONE_NS = 100000000, /* before it is taken for another one */
    CROWDED_MOST = 32,      /* yields among more threads of our own than processors */
    CROWDED_WORTH = 8,      /* as many as a sleep and a wake cost */
    CROWDED_PROBE = 32,     /* where they have not been worth it, try again in one wait of these */
    CROWDED_PLACE = 256,    /* sleep without a yield in one wait of these */
    CROWDED_LOOKS = 4,      /* pauses before each of these */
    NS_PER_COUNT = 10,      /* of GOMP_SPINCOUNT */
};

/* --- other threads on the core */

bool gomp_yield_was_long (void)
{
    uint64_t before = inv_now_ns();
    inv_kernel_yield();
    return inv_now_ns() - before > YIELD_LONG_NS;
}

/* What this thread knows of other threads on its core: the number of long yields in sequence.  When
 * those were enough, NOTICED_YIELDS plus the number of waits to sleep in. */
static __thread unsigned short core_shared __attribute__((tls_model("initial-exec"), used));
#define core_shared GOMP_OWN(core_shared)
/* Long yields, each no later than CORUNNER_GONE_NS after the sleeps for the one before: one may be a daemon
 * that is gone again, several a program that stays. */
static __thread unsigned char corunners __attribute__((tls_model("initial-exec"), used));
/* When the thread is to idle again after the last one, however few waits there have been. */
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

/* How often the kernel has let another thread run in place of this one, as was_switched saw it last. */
static __thread long switches_seen __attribute__((tls_model("initial-exec"), used));
#define switches_seen GOMP_OWN(switches_seen)

/* Has it done so since the last call? */
static bool was_switched (void)
{
    struct rusage own;
    if (getrusage(RUSAGE_THREAD, &own) != 0)
        return true;
    bool switched = own.ru_nivcsw != switches_seen;
    switches_seen = own.ru_nivcsw;
    return switched;
}

/* Yield, and learn from it.  True: the core is shared.  (The clock is read anew: what the caller has looked
 * at since it has read it takes as long as a yield where many cores write to that.  And a yield may take
 * long by itself, as on virtual processors.) */
static bool yield_shared (void)
{
    uint64_t before = inv_now_ns();
    inv_kernel_yield();
    uint64_t now = inv_now_ns(), took = now - before;
    bool real = !(inv_managed() && inv_process.emulated); /* on emulated ones our own threads take turns */
    core_shared = real && took > YIELD_NOTICED_NS && was_switched() ? core_shared + 1 : 0;
    if (core_shared > 0 && took > YIELD_LONG_NS)
        record_corunner(now, took);
    else if (core_shared >= NOTICED_YIELDS)
        core_shared = NOTICED_YIELDS + SHARED_SLEEPS;
    return core_shared >= NOTICED_YIELDS;
}

/* One of those waits. */
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
     * SPIN_KEEP_MOST_NS where it was to sleep after that and had work again within this time. */
    uint64_t keep_ns;
    uint64_t since_ns; /* when it began its last wait, if it has idled for keep_ns then and is to sleep; else 0 */
    uint64_t yield_ns;  /* how long it idles on such a core before it yields */
    uint64_t looked_ns; /* when it looked at the clock last in this wait; 0: not yet */
    bool yields;        /* it has yielded in this wait */
} idle_own __attribute__((tls_model("initial-exec"), used)) = {.keep_ns = SPIN_KEEP_NS, .yield_ns = SPIN_ALONE_NS};
#define idle_own GOMP_OWN(idle_own)

void gomp_idle_slept (void)
{
    idle_own.yield_ns = SPIN_ALONE_NS; /* the core may be shared with another thread now */
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

/* Lets other threads run that the kernel has put on the core.  Not at once where there have been none: a yield takes
 * as long as a short region, and work that comes meanwhile waits for its end.  True: another program uses the core,
 * too. */
static bool yields_to_corunner (uint64_t start, uint64_t now, bool alone)
{
    bool interrupted = idle_own.looked_ns > 0 && now - idle_own.looked_ns > INTERRUPTED_NS;
    idle_own.looked_ns = now;
    if (!alone || interrupted || core_shared > 0)
        idle_own.yield_ns = SPIN_ALONE_NS;
    if (now - start < idle_own.yield_ns)
        return false;
    if (!idle_own.yields)
        was_switched(); /* from here on */
    idle_own.yields = true;
    bool shared = yield_shared();
    if (idle_own.yield_ns < SPIN_ALONE_MOST_NS)
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
    /* The thread that lent us the core may have been preempted by our wake-up before it slept,
     * and may have to run before it can ask for the core. */
    bool owned = inv_hold_is_owned();
    if (yields_to_corunner(start, now, owned && verdict == INV_KEEP))
        return false;
    bool holds = owned && now < atomic_load_explicit(&inv_waits.holds_until_ns, memory_order_relaxed);
    if (verdict == INV_WANTED)
        return idle < (holds ? SPIN_KEEP_NS : SPIN_WANTED_NS);
    if (!owned)
        return idle < SPIN_BORROWED_NS;
    if (idle < idle_own.keep_ns)
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

/* As many yields as have been worth it lately, and waits without one. */
static __thread unsigned char crowded_yields __attribute__((tls_model("initial-exec"), used)) =
    CROWDED_MOST;
static __thread unsigned char crowded_sleeps __attribute__((tls_model("initial-exec"), used));
#define crowded_yields GOMP_OWN(crowded_yields)
#define crowded_sleeps GOMP_OWN(crowded_sleeps)

static unsigned crowded_patience (void)
{
    if (crowded_yields > 0 || ++crowded_sleeps % CROWDED_PROBE != 0)
        return crowded_yields;
    return CROWDED_WORTH;
}

static void learn_crowded (bool worth)
{
    if (!worth)
        crowded_yields /= 2;
    else if (crowded_yields < CROWDED_MOST)
        crowded_yields += CROWDED_WORTH;
}

/* The kernel moves no thread that yields: three of four may share one of two cores for long, while
 * the fourth sleeps on its own for most of the time.  A sleeper is woken on an idle core. */
static bool is_placed_anew (void)
{
    static __thread unsigned short waits __attribute__((tls_model("initial-exec")));
    return ++waits % CROWDED_PLACE == 0;
}

static bool spin_crowded (bool (*ready) (void *), void *arg)
{
    if (is_placed_anew())
        return ready(arg);
    unsigned patience = crowded_patience();
    for (unsigned i = 0; i < patience; i++) {
        for (unsigned k = 0; k < CROWDED_LOOKS; k++) {
            if (ready(arg)) {
                if (i > 0)
                    learn_crowded(i <= CROWDED_WORTH);
                return true;
            }
            inv_cpu_relax();
        }
        if (gomp_yield_was_long())
            break;
    }
    if (patience > 0)
        learn_crowded(false);
    return ready(arg);
}

static bool spin_alone (bool (*ready) (void *), void *arg)
{
    uint64_t start = 0, limit = longest_spin_ns();
    if (limit == 0)
        return ready(arg);
    bool hurry = sleep_at_once();
    for (unsigned i = 1;; i++) {
        if (ready(arg))
            return true;
        inv_cpu_relax();
        if (i % POLL_EVERY)
            continue;
        uint64_t now = inv_now_ns();
        if (start == 0) {
            start = now;
            was_switched();
        }
        if (hurry || now - start > limit)
            return false;
        if (now - start > SPIN_ALONE_NS && yield_shared())
            return ready(arg);
    }
}

static bool spin_unmanaged (bool (*ready) (void *), void *arg)
{
    return more_threads_than_cpus() ? spin_crowded(ready, arg) : spin_alone(ready, arg);
}

/* Managed, without a hold: the thread is on a core that another one holds, so it hardly spins at
 * all. */
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
