/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * agent.c - workers with nothing to do, parked where lenders find them.
 *
 * A parked worker shows one bit in its process's slot.  Whoever clears the bit has
 * taken the agent and must wake it: a lender of any process, with a core to borrow, or
 * a thread of this process, with a seat to hand over.  The waker pins the agent to the
 * core while it still sleeps, so that it wakes there: on the core that is just being
 * given up a wake costs 2 us, across cores 60.
 */
#define _GNU_SOURCE
#include "futex.h"
#include "process.h"
#include "tool.h"

/* Indices that no thread of this process uses now. */
static _Atomic uint64_t free_agents = ~UINT64_C(0);
/* Seat that a thread of this process hands to the agent that it wakes, and how many threads
 * are about to.  The agent may be woken by others at the same time (rmd, when it reaps a
 * dead process), so it looks here until nobody is about to: a seat is never left behind. */
static _Atomic int handed[INV_AGENTS] = {[0 ... INV_AGENTS - 1] = INV_SEAT_NONE};
static _Atomic unsigned callers[INV_AGENTS];

static struct inv_slot *our_slot(void)
{
    return inv_slot_at(inv_process.table, inv_process.slot);
}

static int agent_alloc(void)
{
    uint64_t set = atomic_load_explicit(&free_agents, memory_order_relaxed);
    while (set) {
        int a = __builtin_ctzll(set);
        if (atomic_compare_exchange_weak_explicit(&free_agents, &set, set & ~(UINT64_C(1) << a),
                                                  memory_order_acquire, memory_order_relaxed))
            return a;
    }
    return -1;
}

static void agent_free(int a)
{
    atomic_fetch_or_explicit(&free_agents, UINT64_C(1) << a, memory_order_release);
}

/* Take the bit back.  False when a waker has it already and the bell will ring. */
static bool agent_withdraw(struct inv_slot *slot, int a)
{
    uint64_t bit = UINT64_C(1) << a;
    return atomic_fetch_and_explicit(&slot->parked, ~bit, memory_order_seq_cst) & bit;
}

/* The seat that a thread of this process hands to agent a, if one does. */
static int take_handed(int a)
{
    for (;;) {
        /* seq_cst, and callers before handed: partner is inv_agent_call */
        bool coming = atomic_load(&callers[a]) > 0;
        int seat = atomic_exchange(&handed[a], INV_SEAT_NONE);
        if (seat != INV_SEAT_NONE || !coming)
            return seat;
        inv_cpu_relax();
    }
}

/* The seat that a woken agent has: handed over, or borrowed on the waker's hint. */
static int agent_seat(struct inv_agent *agent, int a)
{
    int seat = take_handed(a);
    inv_seat_was_asleep();
    int core = atomic_load_explicit(&agent->core, memory_order_relaxed);
    if (seat != INV_SEAT_NONE) {
        inv_seat_sit(seat);
        return seat;
    }
    if (core >= 0 && (unsigned)core < inv_process.ncores && !inv_process.anonymous &&
        inv_core_borrow(inv_process.table, (unsigned)core, inv_process.slot)) {
        inv_tool_arrived(core);
        inv_seat_sit(core); /* pins where the waker has not: rmd does not */
        return core;
    }
    if (inv_want_get(inv_process.table, inv_process.slot) &&
        (seat = inv_seat_try()) != INV_SEAT_NONE)
        inv_seat_sit(seat);
    if (seat == INV_SEAT_NONE && core >= 0)
        inv_seat_woken_on(core);
    if (seat == INV_SEAT_NONE && inv_process.anonymous)
        inv_token_offer(inv_process.table); /* whoever woke us has told nobody else */
    return seat;
}

bool inv_agent_park(_Atomic uint32_t *word, uint32_t expected)
{
    int a = agent_alloc();
    if (a < 0)
        return false;
    struct inv_slot *slot = our_slot();
    struct inv_agent *agent = &slot->agents[a];
    uint32_t seen = atomic_load_explicit(&agent->bell, memory_order_relaxed);
    atomic_store_explicit(&agent->tid, inv_own_tid(), memory_order_relaxed);
    atomic_store_explicit(&agent->core, INV_NO_CORE, memory_order_relaxed);
    /* seq_cst, and the looks after it: partner is inv_core_offer, which frees a core first
     * and looks for parked agents then.  One of the two sees the other. */
    atomic_fetch_or_explicit(&slot->parked, UINT64_C(1) << a, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);

    int seat = INV_SEAT_NONE;
    bool leave = atomic_load_explicit(word, memory_order_relaxed) != expected;
    if (!leave && inv_want_get(inv_process.table, inv_process.slot)) {
        leave = (seat = inv_seat_try()) != INV_SEAT_NONE;
        if (!leave)
            inv_seat_reclaim_owned(); /* what was free when we asked may be another's now */
    }
    while (!leave && atomic_load_explicit(&agent->bell, memory_order_acquire) == seen)
        inv_futex_wait(&agent->bell, seen, -1, true);
    if (agent_withdraw(slot, a)) {
        agent_free(a);
        inv_seat_was_asleep(); /* a caller that came too late last time may have pinned us */
        if (seat != INV_SEAT_NONE)
            inv_seat_sit(seat);
        return true;
    }
    while (atomic_load_explicit(&agent->bell, memory_order_acquire) == seen)
        inv_futex_wait(&agent->bell, seen, -1, true);
    int second = agent_seat(agent, a);
    agent_free(a);
    if (seat == INV_SEAT_NONE)
        return true;
    /* We had found a core ourselves when somebody woke us with another one: sit on the
     * first, hand the other on. */
    if (second != INV_SEAT_NONE) {
        inv_seat_detach();
        if (!inv_agent_call(second))
            inv_seat_return(second);
    }
    inv_seat_sit(seat);
    return true;
}

/* Take agent a, if it is parked, and give it the seat; it wakes on the core. */
static bool call_one(int a, int seat, int core)
{
    /* Nobody waits for who brings no seat.  The agent may wake on the caller's core and run
     * before the caller has come out of the system call that wakes it. */
    if (seat != INV_SEAT_NONE)
        atomic_fetch_add(&callers[a], 1);
    bool taken = agent_withdraw(our_slot(), a);
    if (taken) {
        /* Without a seat it stays NONE, as take_handed leaves it: when we come here the agent may
         * have been woken by somebody else, have parked again and been handed a seat. */
        if (seat != INV_SEAT_NONE)
            atomic_store(&handed[a], seat);
        inv_agent_wake(inv_process.table, inv_process.slot, a, core);
    }
    if (seat != INV_SEAT_NONE)
        atomic_fetch_sub(&callers[a], 1);
    return taken;
}

static bool call_any(int seat, int core)
{
    /* seq_cst: partner is inv_agent_park, which sets its bit and then looks at the word that the
     * caller may have raised before (gomp_workers_trim) */
    uint64_t bits = atomic_load(&our_slot()->parked);
    for (; bits; bits &= bits - 1)
        if (call_one(__builtin_ctzll(bits), seat, core))
            return true;
    return false;
}

bool inv_agent_call(int seat)
{
    return call_any(seat, seat >= 0 ? seat : INV_NO_CORE);
}

bool inv_agent_call_unseated(int core)
{
    return call_any(INV_SEAT_NONE, core);
}

unsigned inv_agents_parked(void)
{
    return (unsigned)__builtin_popcountll(
        atomic_load_explicit(&our_slot()->parked, memory_order_relaxed));
}

void inv_agents_forget(void)
{
    atomic_store(&free_agents, ~UINT64_C(0));
    for (int a = 0; a < INV_AGENTS; a++) {
        atomic_store(&handed[a], INV_SEAT_NONE);
        atomic_store(&callers[a], 0);
    }
}
