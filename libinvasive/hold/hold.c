/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.c - the cores that this process's threads hold: taking, keeping, giving up.
 *
 * A thin layer of thread and process state over the transitions of core.h.  The hot calls
 * (inv_hold_poll, inv_want with nothing new) only read.
 */
#define _GNU_SOURCE
#include "libinvasive/process.h"
#include "libinvasive/hold/strangers.h"
#include "libinvasive/hold/sched_latency.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/base/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread int inv_hold __attribute__((tls_model("initial-exec"))) = INV_HOLD_NONE;
/* The core that this thread is pinned to, so that an unchanged hold costs no system call. */
static __thread int pinned_core = INV_NO_CORE;
/* The table's confined_seq when this thread has looked last. */
static __thread uint32_t confined_seen;
/* Has this thread held a core?  Then its affinity may be narrower than the program's for good: an
 * evicted thread is not on its core, and not free to run anywhere. */
static __thread bool narrowed;
__thread int inv_tid __attribute__((tls_model("initial-exec")));
/* Are threads bound to their cores?  Not before a region of our OpenMP runtime: other runtimes ask
 * the kernel where they may run.  Written once, by inv_bind_threads; read by threads whose hold
 * begins.  relaxed: a thread that reads it late is bound when its next hold begins. */
static _Atomic bool binding;
/* Has the thread, which is not bound, been evicted from a core?  The kernel keeps it away from there. */
static __thread bool evicted_from;
/* inv_placing, when the thread was bound last. */
static __thread uint32_t placing_seen;
/* Has this thread been asleep where other threads may have pinned it elsewhere? */
static __thread bool waker_pins;
/* Is this the thread that runs on the assigned core?  What the slot has said last, and the core that
 * the thread is bound to for that, INV_NO_CORE: none. */
static __thread bool follows;
static __thread int assigned_seen = INV_NO_CORE, assigned_core = INV_NO_CORE;
static __thread struct inv_sched_latency assigned_latency;

int inv_own_tid(void)
{
    if (inv_tid == 0)
        inv_tid = (int)syscall(SYS_gettid);
    inv_assert(inv_tid > 0);
    return inv_tid;
}

int inv_thread_core(void)
{
    return pinned_core == INV_NO_CORE ? INV_HOLD_NONE : pinned_core;
}

bool inv_thread_pinned(void)
{
    return inv_managed() && !inv_unpinned() &&
           (inv_process.anonymous ? assigned_core != INV_NO_CORE : narrowed);
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
    if (!inv_thread_pinned())
        return INV_NO_CORE;
    inv_wide_cpus(&cpus);
    inv_cpus_set(0, &cpus);
    inv_sched_latency_restore(&assigned_latency); /* a child would have the short slice, too */
    return inv_process.anonymous ? assigned_core : pinned_core;
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

void inv_spread_cpus(struct inv_cpus *cpus)
{
    inv_wide_cpus(cpus);
    add_cores_here(cpus, INV_NO_CORE);
}

/* The calling thread to where the kernel may place it (strangers.h). */
static int spread_self(void)
{
    struct inv_cpus cpus;
    inv_spread_cpus(&cpus);
    return inv_cpus_set(0, &cpus);
}

void inv_thread_repin(int pinned)
{
    if (pinned == INV_NO_CORE)
        return;
    inv_assert(pinned >= 0);
    if (!inv_process.anonymous && placing_seen % 2 != 0)
        spread_self();
    else
        inv_pin(inv_process.table, 0, pinned);
    if (pinned == assigned_core)
        inv_sched_latency_lower(&assigned_latency);
}

void inv_thread_forget(void)
{
    inv_tid = 0;
    pinned_core = INV_NO_CORE;
    narrowed = evicted_from = follows = false;
    assigned_seen = assigned_core = INV_NO_CORE;
    inv_sched_latency_restore(&assigned_latency);
    inv_hold = INV_HOLD_NONE;
}

void inv_assigned_core_enable(void)
{
    follows = true;
}

/* Is it a core of this domain, and of the CPUs where threads of the process may run? */
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
    if ((core == assigned_seen && confined == confined_seen) || !follows ||
        !inv_threads_are_bound())
        return;
    int saved = errno;
    confined_seen = confined;
    assigned_seen = core;
    if (may_run_on(core) && inv_pin(t, 0, core) == 0) {
        assigned_core = core;
        inv_sched_latency_lower(&assigned_latency);
    } else if (assigned_core != INV_NO_CORE) {
        inv_thread_unpin();
        assigned_core = INV_NO_CORE;
    }
    errno = saved;
}

static bool core_is_ours(int core)
{
    inv_assert(core >= 0);
    inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)core)->word,
                                      memory_order_relaxed);
    return inv_word_owner(w) == inv_process.slot + 1;
}

static int try_token(struct inv_table *t)
{
    bool has = inv_tokens_held() > 0;
    if (has && !inv_token_take(t, inv_process.slot)) {
        /* Another thread may have returned our last one meanwhile, when we counted in our try. */
        has = inv_tokens_held() > 0;
        if (has)
            return INV_HOLD_NONE;
    }
    if (!has)
        inv_token_force(t, inv_process.slot);
    inv_tool_arrived(INV_HOLD_TOKEN);
    return INV_HOLD_TOKEN;
}

int inv_hold_acquire(void)
{
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous)
        return try_token(t);
    unsigned home = 0, owned = 0, not_held = 0, last = 0; /* last: not held */
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
        bool held = inv_word_holder(w) != INV_NOBODY || inv_word_owner(w) == INV_ELSEWHERE;
        not_held += !held;
        last = held ? last : core;
        if (inv_word_owner(w) != inv_process.slot + 1)
            continue;
        if (owned++ == 0)
            home = core;
        /* If another is quicker, ask for it at once. */
        if (!held && inv_core_reclaim(t, core, inv_process.slot) == INV_RECLAIM_GOT) {
            inv_tool_arrived((int)core);
            return (int)core;
        }
    }
    inv_assert(not_held <= inv_process.ncores && owned <= inv_process.ncores);
    if (!not_held)
        return INV_HOLD_NONE;
    if (not_held == 1)
        home = last; /* the search begins where it ends */
    int core = inv_core_borrow_near(t, home, inv_process.slot);
    if (core == INV_NO_CORE)
        return INV_HOLD_NONE;
    inv_assert(core >= 0 && inv_hold_is_valid(core));
    inv_tool_arrived(core);
    return core;
}

void inv_hold_reclaim_owned(void)
{
    if (inv_process.anonymous)
        return;
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, core)->word,
                                          memory_order_relaxed);
        if (inv_word_owner(w) == inv_process.slot + 1 &&
            inv_word_holder(w) != inv_process.slot + 1 && inv_word_holder(w) != INV_NOBODY &&
            !inv_word_reclaim(w) &&
            inv_core_reclaim(inv_process.table, core, inv_process.slot) == INV_RECLAIM_GOT)
            inv_hold_release((int)core); /* given up between our two looks: offer it */
    }
}

bool inv_threads_are_bound(void)
{
    return atomic_load_explicit(&binding, memory_order_relaxed);
}

void inv_slot_tell_binding(void)
{
    /* seq_cst, after the process has become managed; partner: inv_bind_threads in another thread */
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&inv_slot_at(inv_process.table, inv_process.slot)->binds,
                          inv_threads_are_bound(), memory_order_relaxed);
}

bool inv_slot_binds(unsigned slot)
{
    return !inv_slot_valid(inv_process.table, (long)slot) ||
           atomic_load_explicit(&inv_slot_at(inv_process.table, slot)->binds,
                                memory_order_relaxed) != 0;
}

void inv_bind_threads(void)
{
    bool bound = atomic_exchange_explicit(&binding, true, memory_order_relaxed);
    /* seq_cst, before we look whether another thread has joined; partner: inv_slot_tell_binding there */
    atomic_thread_fence(memory_order_seq_cst);
    if (bound || !inv_managed())
        return;
    inv_slot_tell_binding();
    if (inv_hold >= 0)
        inv_hold_begin_handed(inv_hold, false);
}

/* The affinity of any thread, 0: our own.  By a system call: our sched_getaffinity shows the program's
 * CPUs. */
static bool cpus_of(int tid, struct inv_cpus *cpus)
{
    inv_cpus_clear(cpus);
    return syscall(SYS_sched_getaffinity, tid, sizeof *cpus, cpus) > 0;
}

/* May the calling thread run on the CPU alone? */
static bool is_only_on(int cpu)
{
    struct inv_cpus cpus;
    return cpus_of(0, &cpus) && inv_cpus_has(&cpus, (size_t)cpu) && inv_cpus_count(&cpus) == 1;
}

/* Put the calling thread, which is not bound, on the core; the kernel may move it at once.  If its
 * CPUs are not the core's afterwards, another process has changed them meanwhile (taskset, or
 * an eviction), and they stay. */
static void move_to(int hold)
{
    struct inv_cpus cpus;
    inv_assert(hold >= 0 && !inv_process.anonymous);
    int cpu = inv_core_at(inv_process.table, (unsigned)hold)->os_cpu;
    if (cpu < 0 || (sched_getcpu() == cpu && !evicted_from))
        return;
    inv_cpus_clear(&cpus);
    if (evicted_from)
        inv_wide_cpus(&cpus);
    else if (!cpus_of(0, &cpus))
        return;
    if (!inv_cpus_has(&cpus, (size_t)cpu))
        return; /* the program has bound it elsewhere */
    if (inv_pin(inv_process.table, 0, hold) != 0 || is_only_on(cpu))
        inv_cpus_set(0, &cpus);
    evicted_from = false;
}

/* Moves the calling thread to the core that it holds from now on. */
static void pin_self(int hold)
{
    if (inv_unpinned())
        return;
    int saved = errno;
    if (!inv_threads_are_bound())
        move_to(hold);
    else if (placing_seen % 2 != 0 && spread_self() == 0)
        pinned_core = hold; /* on any core; as if it were on this one */
    else if (inv_pin(inv_process.table, 0, hold) == 0)
        pinned_core = hold;
    errno = saved;
}

void inv_hold_begin_handed(int hold, bool pinned)
{
    inv_assert(inv_hold_is_valid(hold));
    inv_assert(inv_hold == INV_HOLD_NONE || inv_hold == hold); /* a thread has one hold */
    inv_hold = hold;
    if (hold < 0)
        return;
    narrowed = true;
    if (pinned)
        pinned_core = hold;
    /* relaxed: rmd has given this core away and back since it moved us, and the word of the core
     * is what we have acquired */
    uint32_t confined =
        atomic_load_explicit(&inv_process.table->confined_seq, memory_order_relaxed);
    if (confined != confined_seen)
        pinned_core = INV_NO_CORE;
    confined_seen = confined;
    if (!pinned && waker_pins) /* the waker may have pinned us in our sleep, or not */
        pinned_core = INV_NO_CORE;
    uint32_t placing = atomic_load_explicit(&inv_placing, memory_order_relaxed);
    if (placing != placing_seen || (placing % 2 != 0 && (pinned || waker_pins)))
        pinned_core = INV_NO_CORE;
    placing_seen = placing;
    waker_pins = false;
    if (pinned_core != hold)
        pin_self(hold);
    /* If the thread was evicted on the way here, it finds out at its next scheduling point.  The
     * present holder of the core must not. */
    if (inv_core_is_held(hold))
        atomic_store_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                              inv_own_tid(), memory_order_relaxed);
}

void inv_thread_was_asleep(void)
{
    waker_pins = narrowed = true;
}

void inv_thread_woken_on(int core)
{
    pinned_core = core;
    waker_pins = narrowed = true;
}

void inv_hold_begin(int hold)
{
    inv_hold_begin_handed(hold, false);
}

bool inv_core_is_held(int core)
{
    inv_assert(core >= 0);
    inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)core)->word,
                                      memory_order_relaxed);
    return inv_word_holder(w) == inv_process.slot + 1;
}

int inv_some_held_core(unsigned k)
{
    inv_assert(inv_process.ncores > 0);
    for (unsigned i = 0; i < inv_process.ncores; i++) {
        int core = (int)((k + i) % inv_process.ncores);
        if (inv_core_is_held(core))
            return core;
    }
    return INV_NO_CORE;
}

bool inv_hold_handover(int hold, int tid, bool pin)
{
    inv_assert(hold != INV_HOLD_NONE && inv_hold_is_valid(hold));
    inv_assert(tid > 0);
    if (hold < 0)
        return true;
    bool pinned = !pin || inv_pin(inv_process.table, tid, hold) == 0;
    atomic_store_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid, tid,
                          memory_order_relaxed);
    return pinned;
}

bool inv_hold_is_of(int hold, int tid)
{
    return inv_core_is_held(hold) &&
           atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                                memory_order_relaxed) == tid;
}

/* Is the hold still the calling thread's, as far as it knows?  See inv_hold_retake_idle. */
static bool hold_is_current(int hold)
{
    return hold < 0 ||
           atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                                memory_order_relaxed) == inv_own_tid();
}

int inv_hold_detach(void)
{
    int hold = inv_hold;
    int32_t me = inv_own_tid();
    inv_assert(inv_hold_is_valid(hold));
    inv_hold = INV_HOLD_NONE;
    /* 0 while no thread holds the core: a hold on its way to another thread is not an idle one.  If
     * inv_hold_retake_idle was quicker, its caller has the hold now. */
    if (hold >= 0 &&
        !atomic_compare_exchange_strong(
            &inv_core_at(inv_process.table, (unsigned)hold)->holder_tid, &me, 0)) {
        pinned_core = INV_NO_CORE;
        evicted_from = true;
        return INV_HOLD_NONE;
    }
    return hold;
}

uint64_t inv_thread_cpu_ns(int tid)
{
    struct timespec ts;
    clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 4 | 2); /* as pthread_getcpuclockid */
    return clock_gettime(clock, &ts) == 0
               ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1
               : 0;
}

/* Is the thread asleep or gone, not merely waiting for its turn on a core that it shares? */
static bool thread_sleeps(int tid)
{
    INV_UNCANCELLED;
    char path[48], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return !name_end || strncmp(name_end, ") R", 3) != 0;
}

int inv_hold_retake_idle(void)
{
    static struct {
        int32_t tid;
        uint64_t cpu_ns;
    } last[INV_MAX_CORES];
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous || inv_process.emulated) /* there, kernels sleep to compute */
        return INV_HOLD_NONE;
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        struct inv_core *c = inv_core_at(t, core);
        inv_word w = atomic_load_explicit(&c->word, memory_order_relaxed);
        int32_t tid = atomic_load_explicit(&c->holder_tid, memory_order_relaxed);
        bool ours = inv_word_holder(w) == inv_process.slot + 1 && !inv_word_handed(w);
        uint64_t cpu = ours && tid > 0 ? inv_thread_cpu_ns(tid) : 0;
        /* The same twice: the thread slept all the time, or is gone, or no hold has begun.  (If a
         * hold is about to begin all the same, the last thread to begin has it, and the other one
         * finds out.) */
        bool idle = ours && last[core].tid == tid && last[core].cpu_ns == cpu &&
                    (tid == 0 || thread_sleeps(tid));
        last[core].tid = ours ? tid : -1;
        last[core].cpu_ns = cpu;
        if (idle && atomic_compare_exchange_strong(&c->holder_tid, &tid, 0))
            return (int)core;
    }
    return INV_HOLD_NONE;
}

/* Does the thread that holds that core sleep now, and has it since the last call for the most part, if that was
 * lately?  Its processor time costs a thirtieth of its state, so it is looked at first. */
static bool holder_sleeps(unsigned core, int32_t tid)
{
    enum { LATELY_NS = 10000000 };
    static struct {
        int32_t tid;
        uint64_t cpu_ns, wall_ns;
    } last[INV_MAX_CORES];
    uint64_t cpu = inv_thread_cpu_ns(tid), wall = inv_now_ns(), passed = wall - last[core].wall_ns;
    bool comparable = last[core].tid == tid && passed <= LATELY_NS && cpu >= last[core].cpu_ns;
    bool computed = comparable && 2 * (cpu - last[core].cpu_ns) > passed;
    last[core].tid = tid;
    last[core].cpu_ns = cpu;
    last[core].wall_ns = wall;
    return !computed && thread_sleeps(tid);
}

unsigned inv_holds_asleep(unsigned *held)
{
    unsigned asleep = 0;
    *held = 0;
    for (unsigned core = 0; !inv_process.anonymous && core < inv_process.ncores; core++) {
        if (!inv_core_is_held((int)core))
            continue;
        int32_t tid = atomic_load_explicit(&inv_core_at(inv_process.table, core)->holder_tid,
                                           memory_order_relaxed);
        asleep += tid > 0 && holder_sleeps(core, tid);
        ++*held;
    }
    return asleep;
}

void inv_hold_release(int hold)
{
    struct inv_table *t = inv_process.table;
    inv_assert(inv_hold_is_valid(hold));
    inv_tool_leaves(hold);
    if (hold == INV_HOLD_TOKEN)
        inv_token_return(t, inv_process.slot);
    else if (hold >= 0 && inv_core_lend(t, (unsigned)hold, inv_process.slot))
        inv_core_offer(t, (unsigned)hold, inv_process.slot);
}

void inv_hold_lend(void)
{
    inv_hold_release(inv_hold_detach());
    inv_assert(inv_hold == INV_HOLD_NONE);
}

bool inv_hold_is_owned(void)
{
    return inv_hold >= 0 && core_is_ours(inv_hold);
}

int inv_tokens_held(void)
{
    return atomic_load_explicit(&inv_slot_at(inv_process.table, inv_process.slot)->tokens,
                                memory_order_relaxed);
}

enum inv_verdict inv_hold_check(int hold)
{
    inv_assert(inv_hold_is_valid(hold));
    struct inv_table *t = inv_process.table;
    if (hold == INV_HOLD_TOKEN)
        return inv_token_overdrawn(t) && inv_tokens_held() > 1 ? INV_GIVE
               : inv_others_want(t, inv_process.slot)         ? INV_WANTED
                                                              : INV_KEEP;
    if (hold < 0)
        return INV_LOST;
    inv_word w =
        atomic_load_explicit(&inv_core_at(t, (unsigned)hold)->word, memory_order_relaxed);
    if (inv_word_holder(w) != inv_process.slot + 1) {
        inv_tool_lost(hold);
        return INV_LOST;
    }
    if (inv_word_reclaim(w) && inv_word_owner(w) != inv_process.slot + 1)
        return INV_GIVE;
    return inv_others_want(t, inv_process.slot) ? INV_WANTED : INV_KEEP;
}

enum inv_verdict inv_hold_poll(void)
{
    enum inv_verdict verdict =
        hold_is_current(inv_hold) ? inv_hold_check(inv_hold) : INV_LOST;
    if (verdict == INV_LOST) {
        pinned_core = INV_NO_CORE; /* the evicting process has re-pinned this thread */
        evicted_from = true;
    }
    return verdict;
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

void inv_repin_but(int core, int tid, bool binds)
{
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    add_cores_here(&cpus, core);
    if (tid <= 0 || tid == inv_own_tid() || inv_cpus_count(&cpus) == 0)
        return;
    inv_assert(core >= INV_NO_CORE && core < INV_MAX_CORES);
    if (binds)
        inv_cpus_set(tid, &cpus);
    else
        move_off(tid, &cpus);
}

void inv_repin_evicted(int core, unsigned slot)
{
    struct inv_core *c = inv_core_at(inv_process.table, (unsigned)core);
    inv_repin_but(core, atomic_load_explicit(&c->holder_tid, memory_order_relaxed),
                  inv_slot_binds(slot));
    atomic_store_explicit(&c->holder_tid, 0, memory_order_relaxed);
}

int inv_hold_evict_overdue(void)
{
    static uint64_t asked_ns[INV_MAX_CORES]; /* when we first saw the reclaim pending */
    struct inv_table *t = inv_process.table;
    uint64_t now = inv_now_ns();
    for (unsigned core = 0; !inv_process.anonymous && core < inv_process.ncores; core++) {
        inv_word w =
            atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
        unsigned evicted;
        bool pending = inv_word_owner(w) == inv_process.slot + 1 && inv_word_reclaim(w) &&
                       inv_word_holder(w) != INV_NOBODY;
        if (!pending || asked_ns[core] == 0)
            asked_ns[core] = pending ? now : 0;
        else if (now - asked_ns[core] >= inv_reclaim_bound_ns(t) &&
                 inv_core_evict(t, core, inv_process.slot, &evicted)) {
            inv_assert(evicted != inv_process.slot);
            asked_ns[core] = 0;
            inv_repin_evicted((int)core, evicted);
            inv_tool_arrived((int)core);
            return (int)core;
        }
    }
    return INV_HOLD_NONE;
}

void inv_want(bool wants)
{
    struct inv_table *t = inv_process.table;
    if (inv_want_get(t, inv_process.slot) == wants)
        return;
    inv_want_set(t, inv_process.slot, wants);
    if (inv_process.anonymous)
        return;
    if (wants) {
        inv_hold_reclaim_owned();
        return;
    }
    /* Cores that we asked back and do not need any more go to a process that can use them. */
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w =
            atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
        if (inv_word_owner(w) == inv_process.slot + 1 && inv_word_reclaim(w) &&
            inv_core_reclaim_cancel(t, core, inv_process.slot))
            inv_core_offer(t, core, inv_process.slot);
    }
}

/* Written once before the first region; a thread that does not see it yet has no region. */
static _Atomic(bool (*)(void)) work_probe;

void inv_set_work_probe(bool (*work_waiting)(void))
{
    atomic_store(&work_probe, work_waiting);
}

/* Written once before the first region; a thread that does not see it yet has no task. */
static _Atomic(const struct inv_task_point *) task_point;

void inv_set_task_point(const struct inv_task_point *point)
{
    /* release: partner is inv_task_point; the struct is there before its address */
    atomic_store_explicit(&task_point, point, memory_order_release);
}

const struct inv_task_point *inv_task_point(void)
{
    return atomic_load_explicit(&task_point, memory_order_acquire);
}

void inv_want_if_work(void)
{
    bool (*work_waiting)(void) = atomic_load(&work_probe);
    bool work = work_waiting && work_waiting(); /* first: it may find work */
    if (!inv_want_get(inv_process.table, inv_process.slot) || work)
        return;
    inv_want(false); /* ends with a full fence; a thread queues work before it looks here */
    if (work_waiting && work_waiting())
        inv_want(true);
}
