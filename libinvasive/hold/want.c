/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* want.c - see want.h. */
#include "libinvasive/hold/want.h"
#include "libinvasive/hold/hold.h"
#include "libinvasive/process/openmp.h"
#include "libinvasive/table/core.h"

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
        if (inv_word_owner(w) == inv_own_name() && inv_word_reclaim(w) &&
            inv_core_reclaim_cancel(t, core, inv_process.slot))
            inv_core_offer(t, core, inv_process.slot);
    }
}

void inv_want_if_work(void)
{
    bool work = inv_work_waiting(); /* first: it may find work */
    if (!inv_want_get(inv_process.table, inv_process.slot) || work)
        return;
    inv_want(false); /* ends with a full fence; a thread queues work before it looks here */
    if (inv_work_waiting())
        inv_want(true);
}
