/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * cores.h - what each core that this process holds is used for.
 *
 * A hold that a thread gives up goes to a thread that is ready and waits for a core; else to a worker
 * that starts the next implicit task, or takes explicit ones; else to an unheld thread; else the core is
 * lent to another process.  While work waits the process says that it wants cores, and a worker is there
 * that lenders find.  No function here sleeps.
 */
#ifndef GOMP_CORES_H
#define GOMP_CORES_H 1

#include "process.h"
#include <libinvasive/base/assertion.h>
#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)
/* Gives a hold that its thread has given up to the thread or process that needs it most, in the
 * order above.  If the hold is lost, asked back or INV_HOLD_NONE, looks for a free core for what
 * waits. */
extern void gomp_hold_handover (int hold);
/* Lets a worker use the hold for work of the sources, if there is any. */
extern bool gomp_hold_place_on_work (int hold);
/* Gives the hold to a thread that is ready and waits for a core, if there is one. */
extern bool gomp_hold_place_on_ready (int hold);
/* There is work for one more core than the process holds: takes a free one, or sees to it that
 * lenders find a worker of this process. */
extern void gomp_want_cores (void);
/* The same if the watchdog finds that the work lasts.  For a region that is left to one core at
 * first. */
extern void gomp_want_cores_later (void);
/* gomp_want_cores in a managed process, even if it holds as many cores as it can use: these seem
 * not to serve what waits. */
extern void gomp_call_cores (void);
/* A region begins.  The process can use at most `count` cores; UINT_MAX: not known.  While it holds
 * that many, gomp_want_cores does not ask for more: other processes would lend cores that come back
 * at once. */
extern void gomp_set_useful_cores (unsigned count);
extern void gomp_cores_forget (void);
/* Takes cores that are free now, while work waits. */
extern void gomp_take_free_cores (void);
/* The caller has found no work: the process asks for cores no more, unless there is work after
 * all. */
extern void gomp_stop_wanting (void);
/* Are there threads or implicit tasks that cannot go on without a hold? */
extern bool gomp_threads_queued (void);
/* The same, or threads that compute without one? */
extern bool gomp_threads_waiting (void);
/* Could one of them use the caller's core now?  Threads in the queue of another core do not
 * count. */
extern bool gomp_core_needed (void);
/* Is there anything that a hold could be used for now, explicit tasks included? */
extern bool gomp_work_waiting (void);
/* Lets up to `count` queued threads and unstarted implicit tasks run without a hold.
 * False: the system refuses a thread. */
extern bool gomp_run_unheld (unsigned count);

/* Must the calling thread give its hold up now, or has it lost the hold (to the core's owner, or
 * while it slept to another thread of the process)?  As inv_hold_poll says.  Takes two loads of one
 * cache line if not. */
static inline bool gomp_hold_called_back (void)
{
    int hold = inv_hold;
    if (hold >= 0) {
        struct inv_core *core = inv_core_at(inv_process.table, (unsigned)hold);
        inv_word w = atomic_load_explicit(&core->word, memory_order_relaxed);
        if (inv_word_holder(w) == inv_own_name() && !inv_word_reclaim(w) &&
            atomic_load_explicit(&core->holder_tid, memory_order_relaxed) == inv_tid)
            return false;
    } else if (hold == INV_HOLD_TOKEN && !inv_token_overdrawn(inv_process.table) && !inv_hold_is_lent)
        return false;
    enum inv_verdict verdict = inv_hold_poll();
    return verdict == INV_GIVE || verdict == INV_LOST;
}
#pragma GCC visibility pop
#endif
