/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workers.h - which thread of this process computes on which core of its claim.
 *
 * In a managed process a thread needs a *hold* of a core (libinvasive/process.h) to
 * compute.  There are never more running threads than holds, unless the watchdog lets more
 * (unheld.h):
 *  - a thread that blocks hands its hold over (gomp_hold_yield): to a thread that is
 *    ready and waits for a core; else to a worker that starts the next implicit task, or takes
 *    explicit ones; else to an unheld thread; else the core is lent to another process;
 *  - a thread that becomes runnable queues for a core (gomp_ready) instead of running;
 *  - workers with neither work nor a hold are parked where lenders of other processes find them
 *    (libinvasive/parked.c).
 * In an unmanaged process no thread needs a hold and all of this is skipped.  A process that has
 * joined a domain of its own (inv_join_alone) counts as managed here.
 */
#ifndef GOMP_WORKERS_H
#define GOMP_WORKERS_H 1

#include "parking.h"
#include "process.h"
#include "spin.h"
#include "spinlock.h"
#include "threads.h"
#include <libinvasive/assertion.h>
#include <pthread.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* w may go on as soon as there is a core for it. */
extern void gomp_ready (struct gomp_waiter *w);
/* Hands the calling thread's hold over to the thread or process that it helps most; returns without
 * a hold.  A caller that has lost its hold, or had none, sees to it that a free core is found for
 * waiting threads. */
extern void gomp_hold_yield (void);
/* The same for a hold that is no thread's; it may be lost, or INV_HOLD_NONE. */
extern void gomp_hold_handover (int hold);
/* Queues for a core; returns with a hold.  For threads that have none and must have one. */
extern void gomp_hold_acquire (void);
/* A scheduling point of a thread that goes on: gives a core back that its owner asks for
 * and queues for another one. */
extern void gomp_hold_checkpoint (void);
/* A scheduling point of a thread that waits without sleeping: lets other threads compute. */
extern void gomp_yield_point (void);
/* gomp_unpark of a thread that waits for a lock, which the caller has released.  A caller that
 * waits in a loop of tests of MPI lets that thread go first, if it needs a core.  Otherwise the
 * caller would have the lock again before that thread comes to it, each time. */
extern void gomp_unlock_wake (int *addr, int count);
/* Would a yield point let another thread of this process run? */
extern bool gomp_others_could_run (void);
/* There is work for one more core than we hold: see that we get one, or that
 * we are found when one becomes free. */
extern void gomp_want_cores (void);
/* The same for a region that is left to one core: the watchdog sees to it if the region lasts. */
extern void gomp_want_cores_later (void);
/* gomp_want_cores of a managed process, whatever it holds: what is held seems not to serve what waits. */
extern void gomp_call_cores (void);
/* A region begins: the process can use no more cores than count; UINT_MAX: not known.  While it has so many
 * gomp_want_cores does not say that it wants any, for which other processes would lend cores that come back at
 * once. */
extern void gomp_cores_are_useful (unsigned count);
/* Use cores that are free now for work that waits. */
extern void gomp_take_free_cores (void);
/* There is none, it seems: do not ask for cores any more. */
extern void gomp_stop_wanting (void);
/* Are there threads or implicit tasks that cannot go on without a hold? */
extern bool gomp_threads_queued (void);
/* The same, or threads that compute without one? */
extern bool gomp_threads_waiting (void);
/* Could one of them use the caller's core now, without being moved here from another core that will
 * come to it? */
extern bool gomp_core_needed (void);
/* Is there anything that a hold could be used for now, explicit tasks included? */
extern bool gomp_work_waiting (void);
/* The calling thread is about to wait in MPI, and to lend its core: is there work for that? */
extern bool gomp_leaves_work (void);
/* What a thread does that waits in a loop of tests of MPI. */
extern const struct inv_give_way gomp_give_way;
/* taskpoint.c: what waits outside OpenMP may run. */
extern const struct inv_task_point gomp_task_point;
/* Lets up to `count` queued threads and unstarted implicit tasks run without a hold (progress.c).
 * False: a thread is missing that the system does not give us. */
extern bool gomp_run_unheld (unsigned count);

/* Must the calling thread give its hold up now, or has it lost it (to the owner, or in its sleep to
 * another thread of ours)?  As inv_hold_poll says, by two loads of one line when not. */
static inline bool gomp_hold_called_back (void)
{
    int hold = inv_hold;
    if (hold >= 0) {
        struct inv_core *core = inv_core_at(inv_process.table, (unsigned)hold);
        inv_word w = atomic_load_explicit(&core->word, memory_order_relaxed);
        if (inv_word_holder(w) == inv_process.slot + 1 && !inv_word_reclaim(w) &&
            atomic_load_explicit(&core->holder_tid, memory_order_relaxed) == inv_tid)
            return false;
    } else if (hold == INV_HOLD_TOKEN && !inv_token_overdrawn(inv_process.table))
        return false;
    enum inv_verdict verdict = inv_hold_poll();
    return verdict == INV_GIVE || verdict == INV_LOST;
}

/* --- workers */

enum { GOMP_WORKER_QUIT = 1, GOMP_WORKER_CALL = 2 };

/* A kernel thread of ours.  A *bound* worker belongs to a pool or a nested team and runs
 * the implicit tasks that are assigned to it; a *free* worker takes any that there is. */
struct gomp_worker {
    /* The assigned implicit task.  Written by the master, which then raises word and unparks the
     * worker; read by the worker. */
    _Atomic(struct gomp_region *) region;
    unsigned id;
    /* Counts assignments and calls for help in steps of GOMP_WORKER_CALL; GOMP_WORKER_QUIT: the
     * worker is to end, and frees this struct.  Release; partner: bound_worker_main's acquire loads */
    _Atomic int word;
    _Atomic int asleep; /* 1: parked while its region is open, a call for help wakes it.
                           exchanged by the helper-caller, set by the worker */
    pthread_t handle;
    struct gomp_worker *next; /* in the list of idle nested workers */
};

extern struct gomp_worker *gomp_worker_start (struct gomp_region *, unsigned id);
/* Makes bound workers which wait for their first implicit task, `wanted` of them or as many as limits
 * allow.  Returns a list. */
extern struct gomp_worker *gomp_workers_make (unsigned wanted);
/* Assigns implicit task `id` of the region to the bound worker, and wakes it. */
extern void gomp_worker_assign (struct gomp_worker *, struct gomp_region *, unsigned id);
extern void gomp_worker_quit (struct gomp_worker *);
/* Bound workers of nested teams are kept, by the pool, and used again. */
extern struct gomp_worker *gomp_nested_worker (struct gomp_worker **idle, struct gomp_region *,
                                               unsigned id);
extern void gomp_nested_worker_return (struct gomp_worker **idle, struct gomp_worker *);
/* Take `wanted` of them for the next nested region of the calling thread, or as many as there are
 * and can be made; returns how many.  gomp_nested_worker uses these first; then the second function
 * returns the workers that are left over. */
extern unsigned gomp_nested_workers_take (struct gomp_worker **idle, unsigned wanted);
extern void gomp_nested_workers_return (struct gomp_worker **idle);
extern bool gomp_free_worker_start (int hold);
/* Free workers that there are now, including workers that are about to begin. */
extern unsigned gomp_free_workers (void);
/* Has each free worker that was to be started begun, or been refused?  *started: how many there were,
 * modulo 2^32.  Between two answers of yes with the same number none is started. */
extern bool gomp_free_workers_started (unsigned *started);
/* A thread sleeps in a region: end the program if nothing can go on any more for want of threads. */
extern void gomp_check_starved (void);
/* Free workers are the process's, not a pool's, but each pool says how many it may need again:
 * `more` than it said before.  Free workers beyond the sum end when they have nothing to do;
 * gomp_workers_trim tells sleeping ones, and may wait for them, but not for long. */
extern void gomp_workers_keep (int more);
extern void gomp_workers_trim (bool wait);
extern void gomp_sched_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
