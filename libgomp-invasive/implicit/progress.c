/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * progress.c - what the watchdog looks at, and what it does and learns then (progress.h).
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "progress.h"
#include "carrier.h"
#include "cores.h"
#include "history.h"
#include "ready.h"
#include "region.h"
#include "unheld.h"
#include <libinvasive/hold/strangers.h>
#include <time.h>

enum {
    PERIOD_NS = GOMP_WATCH_NS, /* between two looks, and the least patience in CPU time */
    WALL_FACTOR = 20,   /* patience in wall time over that in CPU time: threads may sleep */
    IDLE_PERIODS = 20,  /* after so many without waiting work: sleep until armed again */
    STARVED_HELPS = 30, /* helps in vain until the program ends: 3 s, with the least patience */
};
#define MAX_PATIENCE_NS UINT64_C(20000000000)

/* What the watchdog sees of the work that waits. */
struct view {
    uint64_t progress;    /* changes when a thread that holds a core takes anything */
    bool waiting;         /* there is work that no thread has taken */
    void (*fn) (void *);  /* of a region with tickets left, or NULL */
    struct gomp_region *region; /* that region, and which use of it */
    uint32_t epoch;
    unsigned nthreads;
    unsigned count; /* how many threads could be of use, at most */
};

static struct view look_at_work (void)
{
    struct view v = {.progress = gomp_progress_counted() + gomp_ready_taken(),
                     .waiting = gomp_threads_queued(),
                     .count = atomic_load_explicit(&gomp_ready.count, memory_order_relaxed)};
    struct gomp_region *region;
    struct gomp_carriers_view carriers = gomp_carriers_inspect();
    v.progress += carriers.switches;
    v.count += carriers.ready;
    if (carriers.region) {
        v.region = carriers.region;
        v.fn = atomic_load_explicit(&v.region->fn, memory_order_acquire);
        v.epoch = atomic_load_explicit(&v.region->epoch, memory_order_relaxed);
        v.nthreads = atomic_load_explicit(&v.region->tickets.nthreads, memory_order_relaxed);
    }
    for (unsigned i = 0; i < GOMP_REGIONS_REGISTERED; i++) {
        if (!(region = gomp_region_registered(i)))
            continue;
        uint64_t left = atomic_load_explicit(&region->tickets.left, memory_order_acquire);
        uint32_t count = gomp_tickets_count(&region->tickets, (uint32_t)(left >> 32));
        v.progress += (left >> 32) * 65536 - count;
        /* acquire: a thread that sees the next region's fn sees that no ticket of this region is
         * left.  nthreads may be the next region's, which only makes the guess worse. */
        void (*fn) (void *) = atomic_load_explicit(&region->fn, memory_order_acquire);
        unsigned nthreads =
            atomic_load_explicit(&region->tickets.nthreads, memory_order_relaxed);
        if (gomp_tickets_any_of(&region->tickets, (uint32_t)(left >> 32))) {
            v.fn = fn;
            v.nthreads = nthreads;
            v.region = region;
            v.epoch = (uint32_t)(left >> 32);
            v.count += count > 0 ? count : v.nthreads;
        }
    }
    return v;
}

static uint64_t patience_of (void (*fn) (void *))
{
    struct gomp_history *h = gomp_history_find(fn);
    uint64_t ns = h ? atomic_load_explicit(&h->patience_ns, memory_order_relaxed) : 0;
    return ns > PERIOD_NS ? ns : PERIOD_NS;
}

static void set_suspicion (void (*fn) (void *), uint64_t patience_ns, enum gomp_suspicion suspicion)
{
    struct gomp_history *h = gomp_history_of(fn);
    atomic_store_explicit(&h->patience_ns,
                          patience_ns < MAX_PATIENCE_NS ? patience_ns : MAX_PATIENCE_NS,
                          memory_order_relaxed);
    atomic_store_explicit(&h->suspicion, suspicion, memory_order_relaxed);
}

static enum gomp_suspicion suspicion_of (void (*fn) (void *))
{
    struct gomp_history *h = gomp_history_find(fn);
    return h ? atomic_load_explicit(&h->suspicion, memory_order_relaxed) : GOMP_UNKNOWN;
}

/* CPU time, so that a machine that is busy with other programs does not look like a program
 * without progress. */
static uint64_t cpu_ns (void)
{
    return inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Regions that were left to one core, as of the last look. */
struct lasting {
    uint32_t epochs[GOMP_REGIONS_REGISTERED];
    uint64_t cpu; /* of that look */
};

/* Gives regions that were left to one core, and were open at the last look already, to all cores.
 * If the process has computed for half a period since then, the master's implicit task is long, or
 * waits for the others in a loop of its own: no further region of the function is left to one core.
 * Is any region left to one core open? */
static bool share_lasting_regions (struct lasting *l, uint64_t cpu)
{
    bool open = false;
    uint64_t computed = cpu - l->cpu;
    for (unsigned i = 0; i < GOMP_REGIONS_REGISTERED; i++) {
        struct gomp_region *region = gomp_region_registered(i);
        if (!region || !gomp_region_is_alone(region))
            continue;
        /* acquire, both: if this is the next region's function, its gate is closed, or its epoch is seen, too
         * (gomp_region_open) */
        void (*fn) (void *) = atomic_load_explicit(&region->fn, memory_order_acquire);
        if (atomic_load_explicit(&region->gate, memory_order_acquire) == 0)
            continue;
        uint32_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
        open = true;
        if (l->epochs[i] == epoch) {
            if (computed >= PERIOD_NS / 2)
                gomp_history_alone_stalls(fn);
            atomic_store_explicit(&region->tickets.alone, false, memory_order_relaxed);
            gomp_want_cores();
        }
        l->epochs[i] = epoch;
    }
    l->cpu = cpu;
    return open;
}

struct watch {
    struct view last;
    uint64_t since_cpu, since_wall; /* of the last progress; 0: none seen yet */
    unsigned idle;                  /* periods without waiting work */
    struct view helped;             /* with the region that was helped, until that ends */
    uint64_t helped_cpu;            /* of the last progress before that */
    unsigned helped_nthreads;
    bool helped_apart; /* its implicit tasks were not taken in order, by choice */
    struct {
        void (*fn) (void *);
        unsigned count; /* looks at which most of its threads slept, less those at which they did not */
    } blocked;
    struct lasting alone;
    unsigned starved; /* helps in sequence for which threads could not be made while all slept */
};

/* Threads that hold cores have made progress without help.  If that took long, implicit tasks of
 * the function take that long, so it gets more patience.  (Not if they are known to wait for each
 * other.  Then all have been started, and a thread that has not run yet waits for time slices of
 * the others, which shows nothing.) */
static void progress_seen (struct watch *w, const struct view *now, uint64_t cpu, uint64_t wall)
{
    uint64_t stalled = cpu - w->since_cpu;
    if (now->waiting && w->last.waiting && now->fn && now->fn == w->last.fn &&
        w->since_wall != 0 && stalled > 2 * PERIOD_NS && 4 * stalled > patience_of(now->fn) &&
        suspicion_of(now->fn) != GOMP_SPINS)
        set_suspicion(now->fn, 4 * stalled, GOMP_UNKNOWN);
    w->since_cpu = cpu;
    w->since_wall = wall;
    w->starved = 0;
}

/* Work waits: takes own cores that borrowers are late to give back, cores that threads of this
 * process hold asleep, and cores that are free although the process wants cores.  (Of hundreds of
 * workers lenders find only INV_PARKED_MAX, and a core that is given up while none of these is
 * parked wakes no thread.) */
static void serve_cores (bool call)
{
    int hold;
    if ((hold = inv_hold_evict_overdue()) != INV_HOLD_NONE ||
        (hold = inv_hold_retake_idle()) != INV_HOLD_NONE) {
        gomp_hold_handover(hold);
    } else if (inv_want_get(inv_process.table, inv_process.slot))
        gomp_take_free_cores();
    else if (call)
        gomp_call_cores(); /* none has been called for, as by the barrier of a short region */
}

/* Are cores to be called?  With more processes than cores not for short regions (open.c), so only
 * for one that was open at the last look already. */
static bool is_to_call (const struct view *last, const struct view *now)
{
    return !inv_process.anonymous || !now->region ||
           (now->region == last->region && now->epoch == last->epoch);
}

/* Has the history chosen that the region's implicit tasks are not taken in order? */
static bool order_is_apart (struct gomp_region *region)
{
    return region && atomic_load_explicit(&region->order_is_chosen, memory_order_relaxed) &&
           atomic_load_explicit(&region->tickets.apart, memory_order_relaxed);
}

/* Implicit tasks that sleep in the kernel, for files or timers, sleep at the same time if all have
 * been started. A function counts as one of such tasks if its threads sleep on most of the cores at
 * many looks.  asleep: they do now. */
static void count_blocked (struct watch *w, const struct view *now, bool asleep)
{
    enum { ENOUGH = 8 };
    if (!now->fn)
        return;
    if (w->blocked.fn != now->fn)
        w->blocked.count = 0;
    w->blocked.fn = now->fn;
    if (!asleep)
        w->blocked.count -= w->blocked.count > 0;
    else if (++w->blocked.count == ENOUGH) {
        w->blocked.count = 0;
        if (order_is_apart(now->region))
            gomp_history_apart_stalls(now->fn); /* taken in order they may not have to wait */
        else
            set_suspicion(now->fn, 0, GOMP_SPINS);
    }
}

/* Do threads sleep on more than half of the cores that the process holds?  Not asked on emulated
 * cores, where threads sleep in place of computing. */
static bool most_are_asleep (void)
{
    unsigned held;
    return !inv_process.emulated && 2 * inv_holds_asleep(&held) > held;
}

/* Work waits: finds cores for it. */
static void serve_work (struct watch *w, const struct view *now)
{
    count_blocked(w, now, most_are_asleep());
    serve_cores(is_to_call(&w->last, now));
}

/* Has the region that unheld threads were started for ended?  If its implicit tasks waited for each
 * other it ended soon after that: GOMP_SPINS.  If not they may be long: GOMP_SUSPECTED, with
 * patience for twice the time that one of them would have taken then.  If that has passed as well,
 * they count as waiting for each other, for good.  If they are only long, this does no harm: they
 * are long beside each other. */
static void learn_from_end (struct watch *w, uint64_t cpu)
{
    struct gomp_region *region = w->helped.region;
    if (!region || gomp_region_is_open(region, w->helped.epoch))
        return;
    uint64_t took = cpu - w->helped_cpu;
    enum gomp_suspicion before = suspicion_of(w->helped.fn);
    if (w->helped_apart)
        gomp_history_apart_stalls(w->helped.fn);
    else if (before != GOMP_UNKNOWN || took < 4 * PERIOD_NS)
        set_suspicion(w->helped.fn, 0, GOMP_SPINS);
    else
        set_suspicion(w->helped.fn, 2 * took / w->helped_nthreads + 2 * PERIOD_NS, GOMP_SUSPECTED);
    w->helped.region = NULL;
}

/* Threads that sleep, in a barrier for instance, may wait for implicit tasks for which the system
 * refuses threads.  A message is better than to wait for ever: stock libgomp ends the program at
 * the first refusal. made: threads were made; asleep: the process has hardly computed since the
 * last progress or help. */
static void count_starved (struct watch *w, bool made, bool asleep)
{
    w->starved = made || !asleep ? 0 : w->starved + 1;
    if (w->starved == STARVED_HELPS)
        gomp_fatal_starved();
}

/* A process that owns no core and has no token computes nothing, whatever the region is.  relaxed: a
 * hint. */
static bool own_no_core (void)
{
    return inv_managed() && !inv_process.anonymous && inv_tokens_held() == 0 &&
           atomic_load_explicit(&inv_slot_at(inv_process.table, inv_process.slot)->owned_cores,
                                memory_order_relaxed) == 0;
}

/* No thread that holds a core makes progress: lets all that waits run without holds. */
static void run_unheld (struct watch *w, const struct view *now, uint64_t cpu, uint64_t wall)
{
    if (now->region && !order_is_apart(now->region))
        atomic_store_explicit(&gomp_history_of(now->fn)->stalled, true, memory_order_relaxed);
    bool made = gomp_run_unheld(now->count);
    count_starved(w, made, cpu - w->since_cpu < PERIOD_NS);
    if (now->region && !own_no_core()) {
        w->helped = *now;
        w->helped_cpu = w->since_cpu;
        w->helped_nthreads = now->nthreads;
        w->helped_apart = order_is_apart(now->region);
    }
    /* Patience begins anew: what was started must have time to show that it helps. */
    w->since_cpu = cpu;
    w->since_wall = wall;
}

/* Only the watchdog's thread reads and writes it. */
static struct watch watch;

/* Are threads of libraries to be looked at (inv_strangers_sample)?  In a process that has
 * regions. */
static bool beside_strangers (void)
{
    return inv_managed() && atomic_load_explicit(&inv_strangers.count, memory_order_relaxed) > 0 &&
           gomp_regions_in_use();
}

static void look_for_stall (void)
{
    struct watch *w = &watch;
    bool strangers = beside_strangers();
    struct view now = look_at_work();
    bool unheld = gomp_unheld_compute();
    uint64_t cpu = cpu_ns();
    if (share_lasting_regions(&w->alone, cpu))
        w->idle = 0;
    if (inv_managed())
        gomp_unheld_rescue();
    if (strangers)
        inv_strangers_sample();
    if (inv_managed() && gomp_work_waiting())
        serve_work(w, &now);
    uint64_t wall = inv_now_ns();
    learn_from_end(w, cpu);
    w->idle = now.waiting || unheld || strangers || w->helped.region ? 0 : w->idle + 1;
    if (!now.waiting)
        gomp_progress_drop_extras(); /* they were for regions that are over */
    if (!now.waiting || now.progress != w->last.progress || w->since_wall == 0)
        progress_seen(w, &now, cpu, wall);
    else {
        uint64_t limit = patience_of(now.fn);
        if (cpu - w->since_cpu >= limit || wall - w->since_wall >= WALL_FACTOR * limit)
            run_unheld(w, &now, cpu, wall);
    }
    w->last = now;
}

static bool is_idle (void)
{
    return watch.idle > IDLE_PERIODS;
}

static void forget_watch (void)
{
    watch = (struct watch){0};
}

static bool has_reason (void)
{
    return gomp_work_waiting() || beside_strangers() || share_lasting_regions(&watch.alone, cpu_ns());
}

const struct gomp_watch gomp_progress_watch = {look_for_stall, is_idle, forget_watch, has_reason};
