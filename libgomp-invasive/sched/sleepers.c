/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sleepers.c - see sleepers.h.
 */
#include "sleepers.h"
#include "cores.h"
#include "ready.h"
#include "suspended.h"
#include "unheld.h"

void gomp_waiter_sleep_for (struct gomp_waiter *w, int64_t timeout_ns)
{
    inv_assert(inv_hold == INV_HOLD_NONE || !w->needs_hold);
    if (!gomp_waiter_rest(w, timeout_ns) && !gomp_ready_leave(w))
        gomp_waiter_rest(w, -1); /* a waker has taken it out of the queue */
    if (w->pinning == GOMP_PIN_FAILED)
        inv_thread_was_asleep();
    if (w->hold != INV_HOLD_NONE)
        inv_hold_begin_handed(w->hold, w->pinning == GOMP_PIN_DONE);
    else if (w->needs_hold && inv_managed()) {
        gomp_unheld_begin();
        gomp_want_cores();
    }
}

void gomp_waiter_sleep (struct gomp_waiter *w)
{
    gomp_waiter_sleep_for(w, -1);
}

bool gomp_unpark_sleepers (int *addr, int count)
{
    if (!gomp_lot_has_any(addr))
        return false;
    struct gomp_waiter *next, *w = gomp_lot_take(addr, count);
    bool ready = false;
    for (; w; w = next) {
        next = w->next;
        if (w->context) {
            gomp_context_is_ready(w->context);
            ready = true;
        } else if (w->needs_hold && inv_managed()) {
            gomp_ready_push(w);
            ready = true;
        } else
            gomp_waiter_wake(w, INV_HOLD_NONE);
    }
    if (ready)
        gomp_want_cores();
    return ready;
}

void gomp_unpark (int *addr, int count)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!gomp_unpark_sleepers(addr, count))
        gomp_suspended_call_cores();
}
