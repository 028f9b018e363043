/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workers.c - the loop of a free worker (workers.h).
 */
#include "libgomp.h"
#include "workers.h"
#include "cores.h"
#include "free_workers.h"
#include "hold.h"
#include "ready.h"
#include "sleepers.h"
#include "work_source.h"
#include "spin.h"
#include "unheld.h"
#include "watchdog.h"
#include <libinvasive/hold/pull.h>
#include <libinvasive/process/tool.h>

static bool help_waiting (void *arg)
{
    (void)arg;
    return gomp_work_sources.explicit->waits();
}

/* Hands the caller's hold over by `place`, if *count, of threads that wait for one, is not 0.
 * True: the caller has no hold any more. */
static bool hand_hold_over (_Atomic unsigned *count, bool (*place) (int hold))
{
    if (atomic_load_explicit(count, memory_order_relaxed) == 0)
        return false;
    gomp_work_sources.implicit->publish();
    int hold = inv_hold_detach();
    inv_assert(inv_hold == INV_HOLD_NONE);
    if (hold == INV_HOLD_NONE || place(hold))
        return true;
    inv_hold_begin(hold);
    return false;
}

/* Spin for work.  False: the thread has idled for too long.  (It may go on if other threads have
 * taken the work that was in sight.) */
static bool idle_for_work (void)
{
    INV_TELL(idle_begin());
    enum gomp_idle_end end = gomp_idle_spin(help_waiting, NULL);
    INV_TELL(idle_end());
    return end != GOMP_IDLE_LONG || gomp_threads_waiting();
}

/* One round of a free worker that holds a core.  False: nothing to do. */
static bool work_once (void)
{
    const struct gomp_work_source *implicit = gomp_work_sources.implicit, *explicit = gomp_work_sources.explicit;
    if ((implicit->asks_for_unstarted() || gomp_hold_ticket_first()) &&
        implicit->run(GOMP_RUN_UNSTARTED))
        return true;
    if (hand_hold_over(&gomp_ready.count, gomp_hold_place_on_ready))
        return true;
    return implicit->run(GOMP_RUN_NEXT) || explicit->run(GOMP_RUN_NEXT) ||
           hand_hold_over(&gomp_unheld_threads.waiting, gomp_unheld_place) ||
           implicit->run(GOMP_RUN_STOLEN) || idle_for_work();
}

/* While work waits one worker must stay where lenders find it.  Must the caller, which could
 * end? */
static bool must_stay (void)
{
    /* Partner: the fence of gomp_want_cores, after which a thread that has queued work looks at
     * `starting`, of which the caller was one. */
    atomic_thread_fence(memory_order_seq_cst);
    return gomp_work_waiting() && inv_parked_count() == 0 && !atomic_exchange(&gomp_workers.staying, true);
}

/* Is the calling worker, which is not parked, to end, since there are too many?  Then it is not
 * counted any more.  (A thread that queues work after this look does not find the caller parked, so
 * it makes another worker.)  *stays: there are too many, but the caller stays, and clears `staying`
 * when it has been parked. */
static bool end_if_not_needed (struct gomp_free_worker *self, bool *stays)
{
    int n = atomic_load(&gomp_workers.count), enough = gomp_free_workers_enough();
    if (n <= enough)
        return false;
    atomic_store_explicit(&self->ending, true, memory_order_relaxed);
    while (n > enough && !(*stays = must_stay()))
        if (atomic_compare_exchange_weak(&gomp_workers.count, &n, n - 1))
            return true;
    atomic_store_explicit(&self->ending, false, memory_order_relaxed);
    return false;
}

/* Runs an implicit task without a hold, if the watchdog wants a thread to. */
static bool run_one_unheld (void)
{
    if (!gomp_progress_take_extra())
        return false;
    gomp_hold_forgo();
    gomp_work_sources.implicit->run(GOMP_RUN_UNSTARTED);
    gomp_unheld_end();
    return true;
}

static void park_spare (void)
{
    inv_assert(inv_hold == INV_HOLD_NONE);
    struct gomp_waiter w = {.tid = inv_own_tid(), .core = INV_HOLD_NONE, .hold = INV_HOLD_NONE};
    gomp_spare_add(&w);
    gomp_waiter_sleep(&w);
}

/* A free worker without a hold: parks where lenders find it.  False: ends. */
static bool wait_for_hold (struct gomp_free_worker *self)
{
    uint32_t seen = atomic_load(&gomp_workers.leave_word);
    gomp_work_sources.implicit->publish();
    if (!inv_managed()) { /* the process is not managed any more */
        inv_futex_wait(&gomp_workers.leave_word, seen, -1, false);
        return true;
    }
    /* The watchdog may have let the worker run without a hold. */
    if (gomp_unheld_end() || run_one_unheld())
        return true;
    bool stays = false;
    if (end_if_not_needed(self, &stays))
        return false;
    gomp_work_sources.implicit->rest();
    INV_TELL(idle_begin());
    struct inv_pulled pulled = inv_pull_waiting(gomp_unheld_compute());
    if (!inv_worker_park(&gomp_workers.leave_word, seen))
        park_spare();
    inv_pull_end(&pulled);
    INV_TELL(idle_end());
    if (inv_hold != INV_HOLD_NONE)
        gomp_idle_slept();
    if (stays)
        atomic_store(&gomp_workers.staying, false);
    if (inv_hold == INV_HOLD_NONE && !run_one_unheld())
        gomp_stop_wanting();
    return true;
}

/* A free worker: takes unstarted implicit tasks and queued threads while it holds a core, and is
 * parked while it holds none. */
static void *free_worker_main (void *arg)
{
    gomp_sem_init(&gomp_thread()->release, 0);
    gomp_free_worker_signals();
    inv_thread_was_asleep(); /* its affinity is that of the thread that has made it */
    if ((int)(intptr_t)arg != INV_HOLD_NONE)
        inv_hold_begin((int)(intptr_t)arg);
    struct gomp_free_worker self = {0};
    gomp_free_worker_enter(&self);
    for (;;) {
        if (!inv_managed() || inv_hold == INV_HOLD_NONE) {
            if (!wait_for_hold(&self))
                break;
            continue;
        }
        gomp_progress_note();
        if (gomp_hold_called_back() || !work_once())
            gomp_hold_yield();
    }
    inv_assert(inv_hold == INV_HOLD_NONE && !gomp_unheld_self); /* it takes no core with it */
    gomp_free_worker_leave(&self);
    gomp_work_sources.implicit->leave();
    gomp_thread()->thread_pool = NULL; /* that of its last region may be gone */
    gomp_work_sources.explicit->leave();
    return NULL;
}

void gomp_workers_loaded (void)
{
    gomp_free_workers_execute(free_worker_main);
}
