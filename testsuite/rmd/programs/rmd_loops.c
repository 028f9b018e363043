/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_loops.c - all that rmd does to words of a table comes to an end while a member changes them
 * all the time.
 *
 * Here the member is always a moment earlier: the code is compiled with atomic operations that
 * never find what was there before.  A loop without a bound does not end then.  Prints what has
 * ended.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>

#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(word, seen, next, success, failure)                  \
    ((void)(next), *(seen) = atomic_load(word), 0)
/* The member has cleared these bits, and set all other ones. */
#undef atomic_fetch_and
#define atomic_fetch_and(word, mask) all_others(word, mask)

static uint64_t all_others(_Atomic uint64_t *word, uint64_t mask)
{
    return atomic_load(word) | mask;
}

#include "libinvasive/table/core.c"
#define RMD_TRIES RMD_TRIES_OF_TRACE
#include "libinvasive/table/trace.c"

#include <stdio.h>
#include <stdlib.h>

enum { CORES = 4, OWNER = 1 };

static struct inv_table *table;

/* A parked owner that wants the core, which another process holds or none. */
static void begin(unsigned holder, bool reclaim)
{
    struct inv_slot *s = inv_slot_at(table, OWNER);
    atomic_store(&s->state, INV_SLOT_LIVE);
    atomic_store(&s->parked, ~UINT64_C(0));
    atomic_store(&table->wanting[0], UINT64_C(1) << OWNER);
    for (unsigned c = 0; c < CORES; c++)
        atomic_store(&inv_core_at(table, c)->word, inv_word_next(0, holder, OWNER + 1, reclaim));
}

static void ended(const char *what)
{
    puts(what);
    fflush(stdout);
}

static void transitions(void)
{
    const uint64_t members[INV_SLOT_WORDS] = {1 << OWNER};
    unsigned freed;
    begin(3, false);
    inv_core_own(table, 0, OWNER + 2);
    ended("own");
    inv_core_withdraw(table, 0);
    ended("withdraw");
    inv_core_expel(table, 0);
    ended("expel");
    inv_core_admit(table, 0);
    ended("admit");
    inv_core_reap(table, 0, OWNER);
    ended("reap");
    inv_core_seize(table, 0, 2);
    ended("seize");
    inv_core_repair(table, 0, INV_ELSEWHERE, members);
    ended("repair");
    ask_for_owner(table, 0, OWNER + 1);
    ended("ask_for_owner");
    begin(3, true);
    inv_core_reclaim_cancel(table, 0, OWNER);
    ended("reclaim_cancel");
    begin(INV_NOBODY, false);
    inv_slot_reap(table, 7, &freed);
    ended("inv_slot_reap");
}

static void offers(void)
{
    begin(INV_NOBODY, false);
    inv_parked_take(table, OWNER);
    ended("parked_take");
    inv_core_offer(table, 0, INV_MAX_SLOTS);
    ended("offer");
    begin(INV_NOBODY, true);
    atomic_store(&inv_slot_at(table, OWNER)->parked, 0);
    atomic_store(&table->wanting[0], 0);
    inv_core_offer(table, 0, INV_MAX_SLOTS);
    ended("offer of what was reserved");
    atomic_store(&inv_slot_at(table, OWNER)->sleepers, 1);
    atomic_store(&inv_slot_at(table, OWNER)->home, 0);
    inv_core_offer(table, 0, INV_MAX_SLOTS);
    ended("offer to a sleeper");
    inv_rescue(table);
    ended("rescue");
    atomic_store(&table->free_tokens, INT32_MAX);
    inv_token_offer(table);
    ended("token_offer");
}

int main(void)
{
    if (inv_table_create(CORES, NULL, INV_MAX_SLOTS, INV_MODE_PINNED, &table) < 0)
        return 1;
    transitions();
    offers();
    atomic_store(&table->tracing, 1);
    atomic_store(&inv_trace_ring, INV_TRACE_RMD);
    inv_trace_write(table, INV_TRACE_TOKEN, 1);
    ended("trace_write");
    transitions();
    ended("traced");
    return 0;
}
