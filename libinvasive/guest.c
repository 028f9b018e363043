/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* guest.c - see guest.h. */
#define _GNU_SOURCE
#include "guest.h"
#include "process.h"

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

static bool is_alive(const struct inv_guest *g)
{
    int saved = errno;
    bool alive = syscall(SYS_tgkill, g->pid, g->tid, 0) == 0;
    errno = saved;
    return alive;
}

void inv_guest_evicted(struct inv_guest *g, int core, unsigned slot)
{
    int32_t tid = atomic_load_explicit(&core_at(core)->holder_tid, memory_order_relaxed);
    inv_repin_evicted(core, slot);
    bool known = tid > 0 && slot != inv_process.slot && inv_slot_valid(inv_process.table, slot);
    g->tid = known ? tid : 0;
    g->pid = known ? inv_slot_at(inv_process.table, slot)->pid : 0;
    g->core = core;
    g->binds = inv_slot_binds(slot);
    g->in = false;
}

void inv_guest_invite(struct inv_guest *g, int core)
{
    inv_word w;
    if (!g->tid || g->core != core)
        return;
    w = atomic_load_explicit(&core_at(core)->word, memory_order_relaxed);
    if (inv_word_holder(w) != INV_NOBODY)
        return;
    if (thread_holds_core(g->tid) || !is_alive(g) || inv_pin(inv_process.table, g->tid, core) != 0) {
        g->tid = 0;
        return;
    }
    inv_repin_but(INV_NO_CORE, g->tid, true); /* it is there now, and may go where there is more room */
    g->in = true;
    inv_prompt_begin(&g->prompt);
}

void inv_guest_dismiss(struct inv_guest *g, int core)
{
    inv_prompt_end(&g->prompt);
    if (!g->tid || !g->in || g->core != core)
        return;
    g->in = false;
    if (thread_holds_core(g->tid) || !is_alive(g))
        g->tid = 0;
    else
        inv_repin_but(core, g->tid, g->binds);
}
