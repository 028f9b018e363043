/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* pin.c - see pin.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/pin.h"
#include "libinvasive/process/holdings.h"
#include "libinvasive/process/sched_latency.h"
#include "libinvasive/table/core.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    /* Are threads pinned to their cores?  Not before a region of our OpenMP runtime: other runtimes
     * ask the kernel where they may run.  Written once, by inv_pinning_enable; read by threads
     * whose hold begins.  relaxed: a thread that reads it late is pinned when its next hold
     * begins. */
    _Atomic bool pinning;
    /* Odd: the kernel places threads that hold a core.  Greater by an even number: a thread may not be
     * where its hold says.  Writers: inv_place_by_kernel, one thread at a time, and
     * inv_thread_move_here.  relaxed: a thread that reads it late is pinned, or not, when its next
     * hold begins. */
    _Atomic uint32_t placing;
} shared;

/* Of the calling thread. */
static __thread struct {
    int pinned_core;        /* that it is pinned to, so that an unchanged hold costs no system call */
    uint32_t confined_seen; /* the table's confined_seq when the thread has looked last */
    uint32_t placing_seen;  /* shared.placing, when the thread was pinned last */
    /* Has the thread held a core?  Then its affinity may be narrower than the program's for good: an
     * evicted thread is not on its core, and not free to run anywhere. */
    bool narrowed;
    bool evicted_from; /* is not pinned, and was evicted: the kernel keeps it away from there */
    bool waker_pins;   /* has been asleep where other threads may have pinned it elsewhere */
} self = {.pinned_core = INV_NO_CORE};
/* State of the thread that runs on the assigned core. */
static __thread struct {
    bool follows; /* is this that thread? */
    int seen;     /* the slot's `assigned` when the thread has read it last */
    int core;     /* the core that the thread is pinned to therefore, INV_NO_CORE: none */
    struct inv_sched_latency latency;
} assigned = {.seen = INV_NO_CORE, .core = INV_NO_CORE};
/* For inv_thread_let_go. */
static __thread struct inv_sched_latency lent_latency;

int inv_thread_core(void)
{
    return self.pinned_core == INV_NO_CORE ? INV_HOLD_NONE : self.pinned_core;
}

bool inv_thread_pinned(void)
{
    return inv_managed() && !inv_unpinned() &&
           (inv_process.anonymous ? assigned.core != INV_NO_CORE : self.narrowed);
}

/* Is the core this domain's?  relaxed: rmd moves threads that notice late. */
static bool is_here(unsigned core)
{
    return inv_word_owner(atomic_load_explicit(&inv_core_at(inv_process.table, core)->word,
                                               memory_order_relaxed)) != INV_ELSEWHERE;
}

void inv_wide_cpus(struct inv_cpus *cpus)
{
    *cpus = inv_process.wide_mask;
    for (unsigned c = 0; c < inv_process.ncores; c++) {
        int cpu = inv_core_at(inv_process.table, c)->os_cpu;
        if (cpu >= 0 && cpu < INV_MAX_CPUS && !is_here(c))
            inv_cpus_remove(cpus, (size_t)cpu);
    }
    if (inv_cpus_count(cpus) == 0)
        *cpus = inv_process.wide_mask;
}

void inv_own_cpus(struct inv_cpus *cpus)
{
    if (inv_cpus_equal(&inv_process.own_mask, &inv_process.wide_mask))
        inv_wide_cpus(cpus);
    else
        *cpus = inv_process.own_mask;
}

int inv_thread_unpin(void)
{
    struct inv_cpus cpus;
    inv_sched_latency_restore(&lent_latency);
    if (!inv_thread_pinned())
        return INV_NO_CORE;
    inv_wide_cpus(&cpus);
    inv_cpus_set(0, &cpus);
    inv_sched_latency_restore(&assigned.latency); /* a child would have the short slice, too */
    return inv_process.anonymous ? assigned.core : self.pinned_core;
}

void inv_thread_float(void)
{
    inv_sched_latency_restore(&lent_latency);
    if (!inv_pinning_enabled() || inv_unpinned())
        return;
    inv_thread_unpin();
    self.pinned_core = INV_NO_CORE;
    self.narrowed = self.waker_pins = self.evicted_from = false;
}

void inv_thread_let_go(void)
{
    if (inv_process.anonymous || inv_unpinned())
        return;
    if (inv_pinning_enabled()) {
        inv_thread_unpin();
        self.pinned_core = INV_NO_CORE;
    }
    inv_sched_latency_lower(&lent_latency);
}

int inv_thread_unpin_for_child(void)
{
    struct inv_cpus cpus;
    int pinned = inv_thread_unpin();
    if (pinned != INV_NO_CORE) {
        inv_own_cpus(&cpus);
        inv_cpus_set(0, &cpus);
    }
    return pinned;
}

/* The CPUs of this domain's cores, but for one core's. */
static void add_cores_here(struct inv_cpus *cpus, int but)
{
    for (unsigned c = 0; c < inv_process.ncores; c++) {
        int cpu = inv_core_at(inv_process.table, c)->os_cpu;
        if ((int)c != but && cpu >= 0 && cpu < INV_MAX_CPUS && is_here(c))
            inv_cpus_add(cpus, (size_t)cpu);
    }
}

/* The CPUs of threads that hold a core while the kernel places them (strangers.h): those of threads
 * without a hold, and all cores of the domain. */
static void spread_cpus(struct inv_cpus *cpus)
{
    inv_wide_cpus(cpus);
    add_cores_here(cpus, INV_NO_CORE);
}

/* Sets the calling thread's affinity to those CPUs.  Returns 0 or -1. */
static int spread_self(void)
{
    struct inv_cpus cpus;
    spread_cpus(&cpus);
    return inv_cpus_set(0, &cpus);
}

void inv_thread_repin(int pinned)
{
    if (pinned == INV_NO_CORE)
        return;
    inv_assert(pinned >= 0);
    if (!inv_process.anonymous && self.placing_seen % 2 != 0)
        spread_self();
    else
        inv_pin(inv_process.table, 0, pinned);
    if (pinned == assigned.core)
        inv_sched_latency_lower(&assigned.latency);
}

void inv_pin_forget(void)
{
    self.pinned_core = INV_NO_CORE;
    self.narrowed = self.evicted_from = assigned.follows = false;
    assigned.seen = assigned.core = INV_NO_CORE;
    inv_sched_latency_restore(&assigned.latency);
    inv_sched_latency_restore(&lent_latency);
    atomic_store(&shared.placing, 0);
}


void inv_assigned_core_enable(void)
{
    assigned.follows = true;
}

/* Is `core` one of this domain, and its CPU one where threads of the process may run? */
static bool may_run_on(int core)
{
    if (!inv_core_valid(inv_process.table, core) || !is_here((unsigned)core))
        return false;
    int cpu = inv_core_at(inv_process.table, (unsigned)core)->os_cpu;
    return cpu >= 0 && cpu < INV_MAX_CPUS && inv_cpus_has(&inv_process.wide_mask, (size_t)cpu);
}

void inv_assigned_core_follow(void)
{
    struct inv_table *t = inv_process.table;
    int core = atomic_load_explicit(&inv_slot_at(t, inv_process.slot)->assigned,
                                    memory_order_relaxed);
    /* relaxed, as in inv_hold_begin_handed */
    uint32_t confined = atomic_load_explicit(&t->confined_seq, memory_order_relaxed);
    if ((core == assigned.seen && confined == self.confined_seen) || !assigned.follows ||
        !inv_pinning_enabled())
        return;
    int saved = errno;
    self.confined_seen = confined;
    assigned.seen = core;
    if (may_run_on(core) && inv_pin(t, 0, core) == 0) {
        assigned.core = core;
        inv_sched_latency_lower(&assigned.latency);
    } else if (assigned.core != INV_NO_CORE) {
        inv_thread_unpin();
        assigned.core = INV_NO_CORE;
    }
    errno = saved;
}

bool inv_pinning_enabled(void)
{
    return atomic_load_explicit(&shared.pinning, memory_order_relaxed);
}

void inv_slot_publish_pinning(void)
{
    /* seq_cst, after the process has become managed; partner: inv_pinning_enable in another
     * thread */
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&inv_own_slot()->pins, inv_pinning_enabled(), memory_order_relaxed);
}

bool inv_slot_pins(unsigned slot)
{
    return !inv_slot_valid(inv_process.table, (long)slot) ||
           atomic_load_explicit(&inv_slot_at(inv_process.table, slot)->pins,
                                memory_order_relaxed) != 0;
}

bool inv_pinning_enable(void)
{
    bool before = atomic_exchange_explicit(&shared.pinning, true, memory_order_relaxed);
    /* seq_cst, before the caller looks whether another thread has joined; partner:
     * inv_slot_publish_pinning there */
    atomic_thread_fence(memory_order_seq_cst);
    return before;
}


/* The affinity of any thread, 0: our own.  By a system call: our sched_getaffinity shows the program's
 * CPUs. */
static bool cpus_of(int tid, struct inv_cpus *cpus)
{
    inv_cpus_clear(cpus);
    return syscall(SYS_sched_getaffinity, tid, sizeof *cpus, cpus) > 0;
}

/* Is this CPU the only one on which the thread may run?  tid 0: the caller. */
static bool is_only_on(int tid, int cpu)
{
    struct inv_cpus cpus;
    return cpu >= 0 && cpu < INV_MAX_CPUS && cpus_of(tid, &cpus) && inv_cpus_has(&cpus, (size_t)cpu) &&
           inv_cpus_count(&cpus) == 1;
}

/* Put the calling thread, which is not pinned, on the core; the kernel may move it at once.  If its
 * CPUs are not the core's afterwards, another process has changed them meanwhile (taskset, or
 * an eviction), and they stay. */
static void move_to(int hold)
{
    struct inv_cpus cpus;
    inv_assert(hold >= 0 && !inv_process.anonymous);
    int cpu = inv_core_at(inv_process.table, (unsigned)hold)->os_cpu;
    if (cpu < 0 || (sched_getcpu() == cpu && !self.evicted_from))
        return;
    inv_cpus_clear(&cpus);
    if (self.evicted_from)
        inv_wide_cpus(&cpus);
    else if (!cpus_of(0, &cpus))
        return;
    if (!inv_cpus_has(&cpus, (size_t)cpu))
        return; /* the program has set its CPUs */
    if (inv_pin(inv_process.table, 0, hold) != 0 || is_only_on(0, cpu))
        inv_cpus_set(0, &cpus);
    self.evicted_from = false;
}

/* Moves the calling thread to the core that it holds from now on. */
static void pin_self(int hold)
{
    if (inv_unpinned())
        return;
    int saved = errno;
    if (!inv_pinning_enabled())
        move_to(hold);
    else if (self.placing_seen % 2 != 0 && spread_self() == 0)
        self.pinned_core = hold; /* the kernel places the thread, which counts as pinned to this core */
    else if (inv_pin(inv_process.table, 0, hold) == 0)
        self.pinned_core = hold;
    errno = saved;
}

void inv_thread_pin(int core, bool pinned)
{
    inv_assert(core >= 0);
    inv_sched_latency_restore(&lent_latency);
    self.narrowed = true;
    if (pinned)
        self.pinned_core = core;
    /* relaxed: rmd has given this core away and back since it moved us, and the word of the core
     * is what we have acquired */
    uint32_t confined =
        atomic_load_explicit(&inv_process.table->confined_seq, memory_order_relaxed);
    if (confined != self.confined_seen)
        self.pinned_core = INV_NO_CORE;
    self.confined_seen = confined;
    if (!pinned && self.waker_pins) /* the waker may have pinned us in our sleep, or not */
        self.pinned_core = INV_NO_CORE;
    uint32_t placing = atomic_load_explicit(&shared.placing, memory_order_relaxed);
    if (placing != self.placing_seen || (placing % 2 != 0 && (pinned || self.waker_pins)))
        self.pinned_core = INV_NO_CORE;
    self.placing_seen = placing;
    self.waker_pins = false;
    if (self.pinned_core != core)
        pin_self(core);
}

void inv_thread_follow_placement(void)
{
    if (inv_hold >= 0 && !inv_process.anonymous && inv_pinning_enabled() &&
        atomic_load_explicit(&shared.placing, memory_order_relaxed) != self.placing_seen)
        inv_thread_pin(inv_hold, false);
}

/* Threads are pinned anew when their next hold begins.  relaxed: threads that see it late when a
 * later one does. */
static void pin_anew(void)
{
    atomic_fetch_add_explicit(&shared.placing, 2, memory_order_relaxed);
}

int inv_thread_move_here(int tid, int core)
{
    struct inv_cpus here;
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= INV_MAX_CPUS || !is_only_on(tid, inv_core_at(inv_process.table, (unsigned)core)->os_cpu))
        return -1;
    inv_cpus_clear(&here);
    inv_cpus_add(&here, (size_t)cpu);
    pin_anew();
    return inv_cpus_set(tid, &here) == 0 ? cpu : -1;
}

void inv_thread_move_back(int tid, int core, int cpu)
{
    if (inv_placed_by_kernel() || !is_only_on(tid, cpu))
        return;
    /* It may have begun another hold just before it was moved here, and not know that it was. */
    if (!inv_hold_is_of(core, tid))
        pin_anew();
    if (inv_hold_is_of(core, tid))
        inv_pin(inv_process.table, tid, core);
}

void inv_thread_lost_core(void)
{
    self.pinned_core = INV_NO_CORE;
    self.evicted_from = true;
}


void inv_thread_was_asleep(void)
{
    self.waker_pins = self.narrowed = true;
}

void inv_thread_woken_on(int core)
{
    self.pinned_core = core;
    self.waker_pins = self.narrowed = true;
}

bool inv_placed_by_kernel(void)
{
    return atomic_load_explicit(&shared.placing, memory_order_relaxed) % 2 != 0;
}

void inv_place_by_kernel(bool by_kernel)
{
    struct inv_cpus cpus;
    inv_assert(inv_placed_by_kernel() != by_kernel);
    atomic_fetch_add_explicit(&shared.placing, 1, memory_order_relaxed);
    spread_cpus(&cpus);
    for (unsigned c = 0; by_kernel && c < inv_process.ncores; c++) {
        int32_t tid = inv_holder_of((int)c);
        if (tid)
            inv_cpus_set(tid, &cpus);
    }
}


/* The kernel moves the thread at the first call.  If its CPUs are not `others` when we look again,
 * the program or an operator has set them meanwhile, and they stay. */
static void move_off(int tid, const struct inv_cpus *others)
{
    struct inv_cpus before, now;
    if (!cpus_of(tid, &before) || inv_cpus_set(tid, others) != 0)
        return;
    if (cpus_of(tid, &now) && inv_cpus_equal(&now, others))
        inv_cpus_set(tid, &before);
}

void inv_repin_but(int core, int tid, bool pins)
{
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    add_cores_here(&cpus, core);
    if (tid <= 0 || tid == inv_own_tid() || inv_cpus_count(&cpus) == 0)
        return;
    inv_assert(core >= INV_NO_CORE && core < INV_MAX_CORES);
    if (pins)
        inv_cpus_set(tid, &cpus);
    else
        move_off(tid, &cpus);
}

void inv_repin_evicted(int core, unsigned slot)
{
    struct inv_core *c = inv_core_at(inv_process.table, (unsigned)core);
    inv_repin_but(core, atomic_load_explicit(&c->holder_tid, memory_order_relaxed),
                  inv_slot_pins(slot));
    atomic_store_explicit(&c->holder_tid, 0, memory_order_relaxed);
}
