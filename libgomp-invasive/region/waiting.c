/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * waiting.c - see waiting.h.
 */
#include "waiting.h"
#include "carrier.h"

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
