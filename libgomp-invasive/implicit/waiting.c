/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * waiting.c - see waiting.h.
 */
#include "waiting.h"
#include "carrier.h"
#include "context.h"
#include "park.h"

struct word_wait {
    int *addr;
    int val;
};

static bool word_changed (void *arg)
{
    const struct word_wait *w = arg;
    return __atomic_load_n(w->addr, MEMMODEL_RELAXED) != w->val;
}

bool gomp_spin (int *addr, int val)
{
    struct word_wait w = {addr, val};
    if (gomp_in_context() && gomp_context_has_others()) {
        gomp_idle_skipped();
        return false;
    }
    return gomp_spin_until(word_changed, &w);
}

/* Waits without a sleep of the kernel thread: in a context, or in a master that executes contexts
 * of its region meanwhile.  False: the thread is to sleep. */
static bool wait_lightly (int *addr, int val)
{
    if (!gomp_in_context())
        return gomp_contexts_run_until(addr, val);
    gomp_context_wait(addr, val);
    return true;
}

void gomp_park (int *addr, int val)
{
    if (!wait_lightly(addr, val))
        gomp_park_thread(addr, val);
}
