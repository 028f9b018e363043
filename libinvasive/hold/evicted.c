/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* evicted.c - see evicted.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/evicted.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/table/core.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct inv_core *core_at(int core)
{
    return inv_core_at(inv_process.table, (unsigned)core);
}

/* Has the thread noticed, and does it hold another core? */
static bool thread_holds_core(int32_t tid)
{
    for (unsigned c = 0; c < inv_process.ncores; c++)
        if (atomic_load_explicit(&core_at((int)c)->holder_tid, memory_order_relaxed) == tid)
            return true;
    return false;
}

static bool is_alive(const struct inv_evicted *e)
{
    int saved = errno;
    bool alive = syscall(SYS_tgkill, e->pid, e->tid, 0) == 0;
    errno = saved;
    return alive;
}

void inv_evicted_note(struct inv_evicted *e, int core, unsigned slot)
{
    int32_t tid = atomic_load_explicit(&core_at(core)->holder_tid, memory_order_relaxed);
    inv_assert(core >= 0 && core < INV_MAX_CORES);
    inv_repin_evicted(core, slot);
    bool known = tid > 0 && slot != inv_process.slot && inv_slot_valid(inv_process.table, slot);
    e->tid = known ? tid : 0;
    e->pid = known ? inv_slot_at(inv_process.table, slot)->pid : 0;
    e->core = core;
    e->pins = inv_slot_pins(slot);
    e->admitted = false;
}

void inv_evicted_admit(struct inv_evicted *e, int core)
{
    inv_word w;
    if (!e->tid || e->core != core)
        return;
    w = atomic_load_explicit(&core_at(core)->word, memory_order_relaxed);
    if (inv_word_holder(w) != INV_NOBODY)
        return;
    if (thread_holds_core(e->tid) || !is_alive(e) || inv_pin(inv_process.table, e->tid, core) != 0) {
        e->tid = 0;
        return;
    }
    inv_assert(e->tid > 0 && e->core == core);
    inv_repin_but(INV_NO_CORE, e->tid, true); /* it is on the core now, and may move on */
    e->admitted = true;
    inv_sched_latency_lower(&e->latency);
}

void inv_evicted_remove(struct inv_evicted *e, int core)
{
    inv_sched_latency_restore(&e->latency);
    if (!e->tid || !e->admitted || e->core != core)
        return;
    inv_assert(e->tid > 0 && e->core == core);
    e->admitted = false;
    if (thread_holds_core(e->tid) || !is_alive(e))
        e->tid = 0;
    else
        inv_repin_but(core, e->tid, e->pins);
}
