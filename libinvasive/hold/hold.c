/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * hold.c - the cores that this process's threads hold: taking, keeping, giving up.
 *
 * A thin layer of thread and process state over the transitions of core.h.  The hot call,
 * inv_hold_poll, only reads.
 */
#define _GNU_SOURCE
#include "libinvasive/hold/hold.h"
#include "libinvasive/base/now.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/hold/suspended.h"
#include "libinvasive/process/holdings.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/table/core.h"

/* What was seen of each core at the last call of the function that looks at it, by one thread at a time. */
static struct {
    /* Writer: inv_hold_retake_idle */
    struct {
        int32_t tid;
        uint64_t cpu_ns;
    } idle[INV_MAX_CORES];
    /* Writer: inv_holds_asleep */
    struct {
        int32_t tid;
        uint64_t cpu_ns, wall_ns;
    } asleep[INV_MAX_CORES];
    /* When the reclaim was first seen pending; 0: it is not.  Writer: inv_hold_evict_overdue */
    uint64_t asked_ns[INV_MAX_CORES];
} seen;

void inv_thread_forget(void)
{
    inv_tid = 0;
    inv_pin_forget();
    inv_hold = INV_HOLD_NONE;
    inv_hold_is_lent = false;
}

/* inv_own_tid without a call where it is known. */
static int own_tid(void) { return inv_tid ? inv_tid : inv_own_tid(); }

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

int inv_hold_take_only_token(void)
{
    if (!inv_token_take_only(inv_process.table, inv_process.slot))
        return INV_HOLD_NONE;
    inv_tool_arrived(INV_HOLD_TOKEN);
    return INV_HOLD_TOKEN;
}

/* No core is free for a process that owns `owned` cores and holds `held`.  Returns the token, if
 * the process has no core at all, else INV_HOLD_NONE. */
static int token_instead(unsigned owned, unsigned held)
{
    return owned || held ? INV_HOLD_NONE : inv_hold_take_only_token();
}

int inv_hold_acquire(void)
{
    struct inv_table *t = inv_process.table;
    if (inv_suspended())
        return INV_HOLD_NONE;
    if (inv_process.anonymous)
        return try_token(t);
    unsigned home = 0, owned = 0, ours = 0, not_held = 0, last = 0; /* last: not held */
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
        bool held = inv_word_holder(w) != INV_NOBODY || inv_word_owner(w) == INV_ELSEWHERE;
        ours += inv_word_holder(w) == inv_own_name();
        not_held += !held;
        last = held ? last : core;
        if (inv_word_owner(w) != inv_own_name())
            continue;
        if (owned++ == 0)
            home = core;
        /* If another process has taken the core meanwhile, this asks for it at once. */
        if (!held && inv_core_reclaim(t, core, inv_process.slot) == INV_RECLAIM_GOT) {
            inv_tool_arrived((int)core);
            return (int)core;
        }
    }
    inv_assert(not_held <= inv_process.ncores && owned <= inv_process.ncores);
    if (!not_held)
        return token_instead(owned, ours);
    if (not_held == 1)
        home = last; /* the search begins at the only core that is not held */
    int core = inv_core_borrow_near(t, home, inv_process.slot);
    if (core == INV_NO_CORE)
        return token_instead(owned, ours);
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
        if (inv_word_owner(w) == inv_own_name() &&
            inv_word_holder(w) != inv_own_name() && inv_word_holder(w) != INV_NOBODY &&
            !inv_word_reclaim(w) &&
            inv_core_reclaim(inv_process.table, core, inv_process.slot) == INV_RECLAIM_GOT)
            inv_hold_release((int)core); /* its holder has just given it up: offer it */
    }
}

void inv_pin_threads(void)
{
    if (inv_pinning_enable() || !inv_managed())
        return;
    inv_slot_publish_pinning();
    if (inv_hold >= 0 && !inv_hold_is_lent)
        inv_hold_begin_handed(inv_hold, false);
}

void inv_hold_begin_handed(int hold, bool pinned)
{
    inv_assert(inv_hold_is_valid(hold));
    inv_assert(inv_hold == INV_HOLD_NONE || inv_hold == hold); /* a thread has one hold */
    inv_hold = hold;
    inv_hold_is_lent = false;
    if (hold == INV_HOLD_TOKEN && !inv_process.anonymous)
        inv_thread_float();
    if (hold < 0)
        return;
    inv_thread_pin(hold, pinned);
    /* If the thread was evicted on the way here, it finds out at its next scheduling point.  The
     * present holder of the core must not. */
    if (inv_core_is_held(hold))
        atomic_store_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                              inv_own_tid(), memory_order_relaxed);
}

void inv_hold_begin(int hold)
{
    inv_hold_begin_handed(hold, false);
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

/* Is the hold still the calling thread's, as far as it knows?  See inv_hold_retake_idle. */
static bool hold_is_current(int hold)
{
    if (hold < 0)
        return !inv_hold_is_lent;
    return atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                                memory_order_relaxed) == own_tid();
}

/* The calling thread finds that a core is not its own any more: rmd may have lent the core while the
 * thread was asleep in the kernel.  current: holder_tid has said until now that it is this thread's.
 * True: the thread has the core again. */
static bool regain_lent(int hold, bool current)
{
    return hold >= 0 &&
           (inv_core_end_absence(inv_process.table, (unsigned)hold, inv_process.slot, own_tid(), current) ||
            (inv_core_is_held(hold) && (current || hold_is_current(hold)))); /* it has just been returned */
}

/* Clears the core's holder_tid: a hold on its way to another thread must not look like that of an
 * idle thread.  False: another thread has the hold by now. */
static bool leave_core(int hold)
{
    int32_t me = own_tid();
    return atomic_compare_exchange_strong(
        &inv_core_at(inv_process.table, (unsigned)hold)->holder_tid, &me, 0);
}

/* Has rmd lent the core for the calling thread, or is it about to?  seq_cst, after holder_tid has
 * changed; partner: inv_core_lend_for. */
static bool was_absent(int hold)
{
    return atomic_load(&inv_core_at(inv_process.table, (unsigned)hold)->absent_tid) == own_tid();
}

int inv_hold_detach(void)
{
    int hold = inv_hold;
    bool lent = inv_hold_is_lent;
    inv_assert(inv_hold_is_valid(hold) && !(lent && hold == INV_HOLD_NONE));
    inv_hold = INV_HOLD_NONE;
    inv_hold_is_lent = false;
    if (hold < 0 || lent)
        return lent ? INV_HOLD_NONE : hold;
    bool left = leave_core(hold);
    while (__builtin_expect(!left || was_absent(hold), 0)) {
        left = regain_lent(hold, left) && (leave_core(hold) || left);
        if (!left) { /* also if inv_hold_retake_idle was quicker: its caller has the hold now */
            inv_thread_lost_core();
            return INV_HOLD_NONE;
        }
    }
    return hold;
}

int inv_hold_retake_idle(void)
{
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous || inv_process.emulated) /* there, kernels sleep to compute */
        return INV_HOLD_NONE;
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        struct inv_core *c = inv_core_at(t, core);
        inv_word w = atomic_load_explicit(&c->word, memory_order_relaxed);
        int32_t tid = atomic_load_explicit(&c->holder_tid, memory_order_relaxed);
        bool ours = inv_word_holder(w) == inv_own_name() && !inv_word_handed(w) &&
                    !atomic_load_explicit(&c->absent_tid, memory_order_relaxed);
        uint64_t cpu = ours && tid > 0 ? inv_thread_cpu_ns(tid) : 0;
        /* The same tid and CPU time as at the last call: the thread has slept all the time, or has
         * ended, or no hold has begun.  (If a hold is about to begin nevertheless, the thread that
         * begins last has it, and the other one finds out.) */
        bool idle = ours && seen.idle[core].tid == tid && seen.idle[core].cpu_ns == cpu &&
                    (tid == 0 || inv_thread_sleeps(tid));
        seen.idle[core].tid = ours ? tid : -1;
        seen.idle[core].cpu_ns = cpu;
        if (idle && atomic_compare_exchange_strong(&c->holder_tid, &tid, 0))
            return (int)core;
    }
    return INV_HOLD_NONE;
}

/* Does the thread that holds the core sleep now?  Not counted if it has computed for most of the
 * time since the last call, and that was lately.  Reading its processor time takes a thirtieth of
 * the time that reading its state takes. */
static bool holder_sleeps(unsigned core, int32_t tid)
{
    enum { LATELY_NS = 10000000 };
    uint64_t cpu = inv_thread_cpu_ns(tid), wall = inv_now_ns(), passed = wall - seen.asleep[core].wall_ns;
    bool comparable = seen.asleep[core].tid == tid && passed <= LATELY_NS && cpu >= seen.asleep[core].cpu_ns;
    bool computed = comparable && 2 * (cpu - seen.asleep[core].cpu_ns) > passed;
    seen.asleep[core].tid = tid;
    seen.asleep[core].cpu_ns = cpu;
    seen.asleep[core].wall_ns = wall;
    return !computed && inv_thread_sleeps(tid);
}

unsigned inv_holds_asleep(unsigned *held)
{
    unsigned asleep = 0;
    *held = 0;
    for (unsigned core = 0; !inv_process.anonymous && core < inv_process.ncores; core++) {
        if (!inv_core_is_held((int)core))
            continue;
        int32_t tid = inv_core_thread(inv_process.table, core);
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

/* The verdict on the token of pinned mode, which a process keeps until it owns a core. */
static enum inv_verdict check_only_token(void)
{
    /* relaxed: a hint, which is looked at again at the next scheduling point */
    bool owns = atomic_load_explicit(&inv_own_slot()->owned_cores, memory_order_relaxed) > 0;
    return owns ? INV_GIVE : INV_WANTED;
}

enum inv_verdict inv_hold_check(int hold)
{
    inv_assert(inv_hold_is_valid(hold));
    struct inv_table *t = inv_process.table;
    if (hold == INV_HOLD_TOKEN && !inv_process.anonymous)
        return check_only_token();
    if (hold == INV_HOLD_TOKEN)
        return inv_token_overdrawn(t) && inv_tokens_held() > 1 ? INV_GIVE
               : inv_others_want(t, inv_process.slot)         ? INV_WANTED
                                                              : INV_KEEP;
    if (hold < 0)
        return INV_LOST;
    inv_word w =
        atomic_load_explicit(&inv_core_at(t, (unsigned)hold)->word, memory_order_relaxed);
    if (inv_word_holder(w) != inv_own_name()) {
        inv_tool_lost(hold);
        return INV_LOST;
    }
    if (inv_word_reclaim(w) && inv_word_owner(w) != inv_own_name())
        return INV_GIVE;
    bool wanted = inv_others_want(t, inv_process.slot) || inv_token_overdrawn(t);
    return wanted ? INV_WANTED : INV_KEEP;
}

enum inv_verdict inv_hold_poll(void)
{
    bool current = hold_is_current(inv_hold);
    enum inv_verdict verdict = current ? inv_hold_check(inv_hold) : INV_LOST;
    if (verdict == INV_LOST && inv_hold_is_lent)
        return verdict; /* the thread knows that it has lent the core, and is not pinned */
    if (verdict == INV_LOST && regain_lent(inv_hold, current))
        verdict = inv_hold_check(inv_hold);
    if (verdict == INV_LOST)
        inv_thread_lost_core();
    return verdict;
}

int inv_hold_evict_overdue(void)
{
    struct inv_table *t = inv_process.table;
    uint64_t now = inv_now_ns();
    for (unsigned core = 0; !inv_process.anonymous && core < inv_process.ncores; core++) {
        inv_word w =
            atomic_load_explicit(&inv_core_at(t, core)->word, memory_order_relaxed);
        unsigned evicted;
        bool pending = inv_word_owner(w) == inv_own_name() && inv_word_reclaim(w) &&
                       inv_word_holder(w) != INV_NOBODY;
        if (!pending || seen.asked_ns[core] == 0)
            seen.asked_ns[core] = pending ? now : 0;
        else if (now - seen.asked_ns[core] >= inv_reclaim_bound_ns(t) &&
                 inv_core_evict(t, core, inv_process.slot, &evicted)) {
            inv_assert(evicted != inv_process.slot);
            seen.asked_ns[core] = 0;
            inv_repin_evicted((int)core, evicted);
            inv_tool_arrived((int)core);
            return (int)core;
        }
    }
    return INV_HOLD_NONE;
}
