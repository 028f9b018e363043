/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * cores.c - see cores.h.
 */
#include "libgomp.h"
#include "cores.h"
#include "free_workers.h"
#include "ready.h"
#include "work_source.h"
#include "threads.h"
#include "unheld.h"
#include "watchdog.h"
#include <limits.h>

/* --- what waits for a core */

bool gomp_threads_queued (void)
{
    return atomic_load_explicit(&gomp_ready.count, memory_order_relaxed) > 0 ||
           gomp_work_sources.implicit->waits();
}

bool gomp_threads_waiting (void)
{
    return gomp_threads_queued() || gomp_unheld_compute();
}

bool gomp_core_needed (void)
{
    return gomp_ready_at(inv_hold) || gomp_work_sources.implicit->in_sight() || gomp_unheld_compute();
}

bool gomp_work_waiting (void)
{
    return gomp_threads_waiting() || gomp_work_sources.explicit->waits();
}

/* --- giving holds to what waits */

bool gomp_hold_place_on_work (int hold)
{
    return (gomp_work_sources.implicit->waits() || gomp_work_sources.explicit->waits()) &&
           (inv_parked_wake(hold) || gomp_spare_wake(hold) || gomp_free_worker_start(hold));
}

bool gomp_hold_place_on_ready (int hold)
{
    struct gomp_waiter *w = gomp_ready_next(hold);
    if (w)
        gomp_waiter_wake(w, hold);
    return w != NULL;
}

/* Gives the hold to a thread that needs one.  False: there is none. */
static bool place_hold (int hold)
{
    inv_assert(hold != INV_HOLD_NONE && inv_hold_is_valid(hold));
    return gomp_hold_place_on_ready(hold) || gomp_hold_place_on_work(hold) || gomp_unheld_place(hold);
}

void gomp_take_free_cores (void)
{
    int hold;
    while (gomp_work_waiting() && (hold = inv_hold_acquire()) != INV_HOLD_NONE)
        if (!place_hold(hold)) {
            inv_hold_release(hold);
            break;
        }
}

/* --- asking for cores */

/* Will a free worker soon park where lenders find it?  This is relied on only where several threads
 * of the program have bound regions: there a free worker has nothing to run, and passes its core
 * on.  Elsewhere a second worker, parked while the first one wakes up, finds cores sooner.  To be
 * called after a full fence; partner: end_if_not_needed, in which a worker says that it ends before
 * its last look for work. */
static bool worker_will_park (void)
{
    return !gomp_work_sources.implicit->in_use() && gomp_use_has_further_threads() &&
           gomp_free_worker_goes_on();
}

static struct {
    /* How many cores the process can use at most; UINT_MAX: not known.  Writers: threads that begin
     * a region.  relaxed: a thread that reads an older value may not ask for cores, and then the
     * watchdog does. */
    _Atomic unsigned useful;
    _Atomic bool showing; /* written by the thread that is in show_a_worker */
} cores = {.useful = UINT_MAX};

void gomp_cores_forget (void)
{
    atomic_store(&cores.useful, UINT_MAX);
    atomic_store(&cores.showing, false);
}

/* Starts a worker, which will park, if lenders find none.  One thread at a time does so: others
 * that come meanwhile rely on it. */
static void show_a_worker (void)
{
    if (gomp_thread_supply.few_threads) /* the watchdog finds free cores, if a little later */
        return;
    if (gomp_refused_lately() || worker_will_park() || atomic_exchange(&cores.showing, true))
        return;
    if (gomp_no_worker_is_parked())
        gomp_free_worker_start(INV_HOLD_NONE);
    atomic_store(&cores.showing, false);
}

/* Does the process hold all cores that it can use?  Borrowed cores that are asked back do not
 * count.  To be called after work was queued and a full fence; partner: a thread that gives its
 * core up and then looks for work (gomp_hold_handover). */
static bool has_all_useful_cores (void)
{
    unsigned us = inv_own_name(), found = 0;
    unsigned useful = atomic_load_explicit(&cores.useful, memory_order_relaxed);
    if (inv_process.anonymous || useful > inv_process.ncores)
        return false;
    for (unsigned core = 0; core < inv_process.ncores && found < useful; core++) {
        inv_word w = atomic_load(&inv_core_at(inv_process.table, core)->word);
        found += inv_word_holder(w) == us && (inv_word_owner(w) == us || !inv_word_reclaim(w));
    }
    inv_assert(found <= useful && found <= inv_process.ncores);
    return found == useful;
}

void gomp_set_useful_cores (unsigned count)
{
    if (!inv_managed())
        return;
    /* Not written in each region: threads that begin regions at the same time would wait for the
     * cache line. */
    if (atomic_load_explicit(&cores.useful, memory_order_relaxed) != count)
        atomic_store_explicit(&cores.useful, count, memory_order_relaxed);
    if (inv_want_get(inv_process.table, inv_process.slot) && has_all_useful_cores())
        gomp_stop_wanting();
}

/* May the process take a token at any time, since it has none? */
static bool may_take_token (void)
{
    /* relaxed: a hint; the watchdog looks later */
    return inv_tokens_held() == 0 &&
           (inv_process.anonymous ||
            atomic_load_explicit(&inv_own_slot()->owned_cores, memory_order_relaxed) == 0);
}

/* Has the process said that it wants cores, so that there is nothing more to do? */
static bool has_called (void)
{
    return inv_want_get(inv_process.table, inv_process.slot) && !may_take_token();
}

void gomp_want_cores (void)
{
    if (!inv_managed())
        return;
    /* seq_cst: the work was queued before; partners are the watchdog and workers, which say that
     * they sleep, or end, before they look for work once more, and gomp_stop_wanting. */
    atomic_thread_fence(memory_order_seq_cst);
    gomp_progress_arm();
    if (has_called() && !gomp_no_worker_is_parked())
        return; /* gomp_call_cores would do nothing */
    if (!has_all_useful_cores())
        gomp_call_cores();
}

void gomp_call_cores (void)
{
    if (gomp_no_worker_is_parked())
        show_a_worker();
    if (has_called())
        return;
    inv_want(true);
    gomp_take_free_cores();
}

void gomp_want_cores_later (void)
{
    if (!inv_managed())
        return;
    /* seq_cst: as in gomp_want_cores; partner is the watchdog before it sleeps */
    atomic_thread_fence(memory_order_seq_cst);
    gomp_progress_arm();
}

/* inv_want(false) keeps lenders from waking this process in vain.  Work that is queued between the
 * look and that call must not be missed: inv_want ends with a full fence, and a thread queues work
 * before it looks whether the process wants cores (gomp_want_cores). */
void gomp_stop_wanting (void)
{
    if (!gomp_work_waiting())
        inv_want(false);
    if (gomp_work_waiting())
        gomp_want_cores();
}

void gomp_hold_handover (int hold)
{
    enum inv_verdict verdict = inv_hold_check(hold);
    bool ours = verdict != INV_LOST && verdict != INV_GIVE;
    if (ours && place_hold(hold))
        return;
    /* Before the release: while the process wants cores, its own parked workers would be offered
     * the hold. */
    gomp_stop_wanting();
    if (verdict != INV_LOST) {
        inv_hold_release(hold);
        gomp_unheld_leave(hold);
    }
    if (!gomp_work_waiting())
        return;
    gomp_want_cores();
    /* The process may want cores already, so gomp_want_cores has not tried the free ones: the holds
     * that threads give up serve what waits.  A hold that is lost or asked back serves nothing, so
     * look for another one. */
    if (!ours)
        gomp_take_free_cores();
}

/* --- without holds */

bool gomp_run_unheld (unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct gomp_waiter *w = gomp_ready_pop(INV_HOLD_NONE);
        if (w)
            gomp_waiter_wake(w, INV_HOLD_NONE);
        else if (!gomp_work_sources.implicit->unheld_may_run())
            break;
        else {
            gomp_progress_add_extra();
            if (!inv_parked_wake_unheld(gomp_unheld_core(i, count)) &&
                !gomp_spare_wake(INV_HOLD_NONE) && !gomp_free_worker_start(INV_HOLD_NONE))
                return false;
        }
    }
    return true;
}
