/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* holdings.c - see holdings.h. */
#define _GNU_SOURCE
#include "libinvasive/process/holdings.h"
#include "libinvasive/base/now.h"
#include "libinvasive/process/thread.h"

static inv_word word_of(int core)
{
    inv_assert(core >= 0);
    return atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)core)->word,
                                memory_order_relaxed);
}

bool inv_core_is_held(int core)
{
    return inv_word_holder(word_of(core)) == inv_own_name();
}

int32_t inv_holder_of(int core)
{
    int32_t tid = atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)core)->holder_tid,
                                       memory_order_relaxed);
    return inv_core_is_held(core) && tid > 0 ? tid : 0;
}

bool inv_hold_is_of(int hold, int tid)
{
    return inv_core_is_held(hold) &&
           atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)hold)->holder_tid,
                                memory_order_relaxed) == tid;
}

int inv_tokens_held(void)
{
    return atomic_load_explicit(&inv_own_slot()->tokens, memory_order_relaxed);
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

bool inv_hold_is_owned(void)
{
    return inv_hold >= 0 && inv_word_owner(word_of(inv_hold)) == inv_own_name();
}

int inv_first_owned_core(void)
{
    for (unsigned core = 0; core < inv_process.ncores; core++)
        if (inv_word_owner(inv_core_word((int)core)) == inv_own_name())
            return (int)core;
    return INV_NO_CORE;
}

uint64_t inv_held_ns(uint64_t now)
{
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous) /* a thread that sleeps to compute uses no CPU time */
        return inv_process.emulated ? 0 : inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t held = atomic_load_explicit(&inv_slot_at(t, inv_process.slot)->counters.held_ns,
                                         memory_order_relaxed);
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        struct inv_core *c = inv_core_at(t, core);
        if (inv_word_holder(atomic_load_explicit(&c->word, memory_order_relaxed)) !=
            inv_own_name())
            continue;
        uint64_t since = atomic_load_explicit(&c->since_ns, memory_order_relaxed);
        if (since && since < now)
            held += now - since;
    }
    return held;
}
