/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * state.h - this process as a member of a domain: the core table, and its slot there.
 *
 * A *hold* is a thread's right to compute: a core number in pinned mode, a token in anonymous mode.  In
 * both modes the thread is said to hold a core.  A thread that holds no core must not compute; it
 * parks.  In pinned mode a process that owns no core and holds none has one token, so that one of its
 * threads can compute wherever the kernel places it.
 */
#ifndef INV_STATE_H
#define INV_STATE_H

#include "libinvasive/base/cpus.h"
#include "libinvasive/table/table.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { INV_HOLD_NONE = -1, INV_HOLD_TOKEN = -2 }; /* >= 0: a core number */

/* Read by all, written by member/join.c alone. */
struct inv_process {
    /* The process is a member of the domain and has held a first core.  release/acquire; partner:
     * inv_join.  Cleared by inv_leave; the table stays mapped, for threads that still read it */
    _Atomic bool managed;
    struct inv_table *table;
    unsigned slot;
    unsigned ncores; /* cores of the domain; of the affinity mask when not managed */
    bool anonymous, emulated;
    bool standalone; /* the domain is this process's own: there is no resource manager
                        (inv_join_standalone) */
    /* The affinity that the process began with, which the program sees; and where its threads may
     * run. They differ where the launcher has bound the process to a part of the domain
     * (widen_mask).  Constant once the process has joined. */
    struct inv_cpus own_mask, wide_mask;
};
extern struct inv_process inv_process;

static inline bool inv_managed(void)
{
    return atomic_load_explicit(&inv_process.managed, memory_order_acquire);
}

/* Is the process managed by an rmd, and not standalone? */
static inline bool inv_has_manager(void) { return inv_managed() && !inv_process.standalone; }

/* Are threads of the process left to the kernel's placement, whatever core they hold? */
static inline bool inv_unpinned(void)
{
    return inv_managed() && (inv_process.emulated || inv_process.standalone);
}

/* What the words of the core table and the boards call the process: 0 is no process. */
static inline unsigned inv_own_name(void)
{
    return inv_process.slot + 1;
}

static inline struct inv_slot *inv_own_slot(void)
{
    return inv_slot_at(inv_process.table, inv_process.slot);
}

/* The word of a core of the domain.  acquire; partner: the change that wrote the word (table/core.c). */
static inline inv_word inv_core_word(int core)
{
    return atomic_load_explicit(&inv_core_at(inv_process.table, (unsigned)core)->word,
                                memory_order_acquire);
}

/* Is a trace being taken (table/trace_ring.h)?  Two loads. */
static inline bool inv_traced(void)
{
    return inv_process.table && inv_tracing(inv_process.table);
}

#endif
