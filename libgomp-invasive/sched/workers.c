/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workers.c - which thread gets a hold, and workers (workers.h).
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "waiting.h"
#include "carrier.h"
#include "workers.h"
#include "progress.h"
#include "ready.h"
#include "unheld.h"
#include "region.h"
#include "taskpool.h"
#include "thread_limits.h"
#include "tickets.h"
#include <libinvasive/tool.h>
#include <libinvasive/uncancelled.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool gomp_leaves_work (void)
{
    if (gomp_contexts_publish())
        gomp_want_cores();
    bool work = gomp_work_waiting();
    if (work && !inv_process.anonymous)
        gomp_call_cores(); /* until now the process may have held a core for each implicit task */
    return work;
}

void gomp_ready (struct gomp_waiter *w)
{
    gomp_ready_push(w);
    gomp_want_cores();
}

bool gomp_threads_queued (void)
{
    return atomic_load_explicit(&gomp_ready_count, memory_order_relaxed) > 0 ||
           gomp_contexts_waiting() || gomp_tickets_left();
}

bool gomp_threads_waiting (void)
{
    return gomp_threads_queued() ||
           atomic_load_explicit(&gomp_unheld_waiting, memory_order_relaxed) > 0;
}

bool gomp_core_needed (void)
{
    return gomp_ready_at(inv_hold) || gomp_tickets_in_sight() || gomp_contexts_look() ||
           atomic_load_explicit(&gomp_unheld_waiting, memory_order_relaxed) > 0;
}

bool gomp_work_waiting (void)
{
    return gomp_threads_waiting() || gomp_help_waiting();
}

bool gomp_others_could_run (void)
{
    if (gomp_in_context() && gomp_context_could_switch())
        return true;
    if (inv_managed())
        return inv_hold != INV_HOLD_NONE && gomp_core_needed();
    return __atomic_load_n(&gomp_managed_threads, MEMMODEL_RELAXED) > gomp_available_cpus;
}

/* --- holds */

/* Of the lists of workers, and of program_signals. */
static struct gomp_spinlock sched_lock;

/* Parked workers beyond the number that a process can show to lenders.  Under sched_lock. */
static struct gomp_waiter *spares;

/* Wakes one of them with the hold, or INV_HOLD_NONE.  False: there is none. */
static bool call_spare (int hold)
{
    inv_assert(inv_hold_is_valid(hold));
    gomp_spinlock_lock(&sched_lock);
    struct gomp_waiter *w = spares;
    if (w)
        spares = w->next;
    gomp_spinlock_unlock(&sched_lock);
    if (w)
        gomp_waiter_wake(w, hold);
    return w != NULL;
}

static void park_spare (void)
{
    inv_assert(inv_hold == INV_HOLD_NONE);
    struct gomp_waiter w = {.tid = inv_own_tid(), .core = INV_HOLD_NONE, .hold = INV_HOLD_NONE};
    gomp_spinlock_lock(&sched_lock);
    w.next = spares;
    spares = &w;
    gomp_spinlock_unlock(&sched_lock);
    gomp_waiter_sleep(&w);
}

/* Lets a worker use the hold for an implicit task that no thread has started, or for explicit ones. */
static bool place_on_ticket (int hold)
{
    return (gomp_tickets_left() || gomp_help_waiting() || gomp_contexts_waiting()) &&
           (inv_parked_wake(hold) || call_spare(hold) || gomp_free_worker_start(hold));
}

/* Gives the hold to a thread that is ready for it. */
static bool place_on_ready (int hold)
{
    struct gomp_waiter *w = gomp_ready_overdue(hold);
    if (!w)
        w = gomp_ready_pop(hold);
    if (w)
        gomp_waiter_wake(w, hold);
    return w != NULL;
}

/* Gives the hold to a thread that needs one.  False: there is none. */
static bool place_hold (int hold)
{
    inv_assert(hold != INV_HOLD_NONE && inv_hold_is_valid(hold));
    return place_on_ready(hold) || place_on_ticket(hold) || gomp_unheld_place(hold);
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

/* Workers that have been created and have not come to their loop yet. */
static _Atomic int starting;

/* A free worker, as other threads see it. */
struct free_worker {
    struct free_worker *next;
    /* Written by the worker, relaxed; a fence follows, before its last look (must_stay). */
    _Atomic bool ending;
};
static struct free_worker *present; /* the list of all; under sched_lock */

static void enter_list (struct free_worker *self)
{
    gomp_spinlock_lock(&sched_lock);
    self->next = present;
    present = self;
    gomp_spinlock_unlock(&sched_lock);
}

static void leave_list (struct free_worker *self)
{
    gomp_spinlock_lock(&sched_lock);
    struct free_worker **link = &present;
    while (*link != self) {
        inv_assert(*link != NULL); /* self is in the list */
        link = &(*link)->next;
    }
    *link = self->next;
    gomp_spinlock_unlock(&sched_lock);
}

/* Will a free worker park before long, where lenders find it?  Counted on only where many threads of the program
 * have bound regions: there a free worker has nothing to run, and passes its core on.  Elsewhere
 * another one, parked while the first wakes up, finds cores sooner.  After a full fence; partner:
 * end_if_not_needed, in which a worker says that it ends before it looks for work for the last
 * time. */
static bool worker_will_park (void)
{
    bool found = false;
    if (gomp_regions_in_use() || !gomp_use_has_further_threads())
        return false;
    gomp_spinlock_lock(&sched_lock);
    for (struct free_worker *w = present; w && !found; w = w->next)
        found = !atomic_load_explicit(&w->ending, memory_order_relaxed);
    gomp_spinlock_unlock(&sched_lock);
    return found;
}

static bool no_worker_is_parked (void)
{
    return inv_parked_count() == 0 && atomic_load_explicit(&starting, memory_order_relaxed) == 0;
}

/* A worker must be there that lenders of cores find.  One thread at a time sees to that: threads
 * that come meanwhile may rely on it. */
static void show_a_worker (void)
{
    static _Atomic bool showing;
    if (gomp_threads_scarce) /* the watchdog finds free cores, if a little later */
        return;
    if (gomp_refused_lately() || worker_will_park() || atomic_exchange(&showing, true))
        return;
    if (no_worker_is_parked())
        gomp_free_worker_start(INV_HOLD_NONE);
    atomic_store(&showing, false);
}

/* So many cores the process can use at most; UINT_MAX: not known.  Writers: threads that begin a region.
 * relaxed: a thread that reads an older value may not ask for cores, and then the watchdog does. */
static _Atomic unsigned useful_cores = UINT_MAX;

/* Has the process all cores that it can use?  Borrowed cores that are asked back do not count.
 * After a full fence behind the queueing of work; partner: a thread that gives its core up, which looks for work
 * after that (gomp_hold_handover). */
static bool has_all_useful_cores (void)
{
    unsigned us = inv_process.slot + 1, found = 0;
    unsigned useful = atomic_load_explicit(&useful_cores, memory_order_relaxed);
    if (inv_process.anonymous || useful > inv_process.ncores)
        return false;
    for (unsigned core = 0; core < inv_process.ncores && found < useful; core++) {
        inv_word w = atomic_load(&inv_core_at(inv_process.table, core)->word);
        found += inv_word_holder(w) == us && (inv_word_owner(w) == us || !inv_word_reclaim(w));
    }
    inv_assert(found <= useful && found <= inv_process.ncores);
    return found == useful;
}

void gomp_cores_are_useful (unsigned count)
{
    if (!inv_managed())
        return;
    /* Threads that begin regions at the same time are not to write to one line each time. */
    if (atomic_load_explicit(&useful_cores, memory_order_relaxed) != count)
        atomic_store_explicit(&useful_cores, count, memory_order_relaxed);
    if (inv_want_get(inv_process.table, inv_process.slot) && has_all_useful_cores())
        gomp_stop_wanting();
}

/* Has the process said that it wants cores, so that there is nothing more to do? */
static bool has_called (void)
{
    return inv_want_get(inv_process.table, inv_process.slot) &&
           !(inv_process.anonymous && inv_tokens_held() == 0);
}

void gomp_want_cores (void)
{
    if (!inv_managed())
        return;
    /* seq_cst: the work was queued before; partners are the watchdog and workers, which say that
     * they sleep, or end, before they look for work once more, and gomp_stop_wanting. */
    atomic_thread_fence(memory_order_seq_cst);
    gomp_progress_arm();
    if (has_called() && !no_worker_is_parked())
        return; /* gomp_call_cores would do nothing */
    if (!has_all_useful_cores())
        gomp_call_cores();
}

void gomp_call_cores (void)
{
    if (no_worker_is_parked())
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

/* Nothing to do here: say so, so that no thread wakes us for nothing.  Work that came between
 * our look and our saying so must not be left alone: inv_want ends with a full fence, and
 * a thread queues work before it looks whether we want cores. */
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
    /* Waiting for another process: what is left here is for others to see first. */
    /* Say first that we do not want it, or it would be offered to our own parked workers. */
    gomp_stop_wanting();
    if (verdict != INV_LOST) {
        inv_hold_release(hold);
        gomp_unheld_leave(hold);
    }
    if (!gomp_work_waiting())
        return;
    gomp_want_cores();
    /* The process may have said that it wants cores when the work was gone already.  Then no thread
     * has tried the free ones.  While it is said no thread tries: every hold that is given
     * up serves what waits.  A hold that is lost or asked back does not, so look for another. */
    if (!ours)
        gomp_take_free_cores();
}

void gomp_hold_yield (void)
{
    if (!inv_managed())
        return;
    gomp_contexts_publish();
    gomp_hold_handover(inv_hold_detach()); /* also when it is lost, or none */
    inv_assert(inv_hold == INV_HOLD_NONE);
}

/* The same until the time is over (negative: never); then the caller computes without a hold. */
static void acquire_within (int64_t timeout_ns)
{
    if (!inv_managed() || gomp_unheld_end())
        return;
    inv_assert(inv_hold == INV_HOLD_NONE);
    struct gomp_waiter w = {.tid = inv_own_tid(),
                            .core = inv_thread_core(),
                            .needs_hold = true,
                            .hold = INV_HOLD_NONE};
    gomp_ready(&w);
    gomp_waiter_sleep_for(&w, timeout_ns);
}

void gomp_hold_acquire (void)
{
    acquire_within(-1);
}

void gomp_hold_checkpoint (void)
{
    if (!inv_managed() || !gomp_holds_core() || !gomp_hold_called_back())
        return;
    if (gomp_in_context()) {
        gomp_context_yield();
        return;
    }
    gomp_hold_yield();
    gomp_hold_acquire();
}

/* How many workers are to prefer an unstarted implicit task to the queue of the ready. */
static _Atomic int tickets_first;

static bool take_ticket_first (void)
{
    int n = atomic_load_explicit(&tickets_first, memory_order_relaxed);
    return n > 0 && atomic_compare_exchange_strong(&tickets_first, &n, n - 1);
}

/* Ready threads may all be waiting like the caller, for an implicit task that has
 * not started, or is a context: that task comes first. */
static void hand_over_tickets_first (int hold)
{
    gomp_contexts_publish();
    if ((gomp_tickets_left() || gomp_contexts_waiting()) && inv_hold_check(hold) != INV_LOST) {
        atomic_fetch_add_explicit(&tickets_first, 1, memory_order_relaxed);
        if (!place_on_ticket(hold))
            gomp_hold_handover(hold);
    } else
        gomp_hold_handover(hold);
}

void gomp_yield_point (void)
{
    if (gomp_in_context() && gomp_context_could_switch()) {
        gomp_context_yield();
        return;
    }
    if (!inv_managed() || !gomp_holds_core() || !gomp_work_waiting()) {
        sched_yield();
        return;
    }
    hand_over_tickets_first(inv_hold_detach());
    gomp_hold_acquire();
}

/* --- a thread that waits in a loop of tests of MPI, and may hold a lock of the program meanwhile:
 * so it waits for a core for a limited time only */

static bool way_wanted (void)
{
    return gomp_unheld_self || gomp_threads_queued() || gomp_help_waiting();
}

static bool let_others_go_first (uint64_t limit_ns)
{
    if (!inv_managed() || !(gomp_holds_core() || gomp_unheld_self))
        return true;
    if (!gomp_threads_queued() && !gomp_help_waiting())
        return inv_hold != INV_HOLD_NONE;
    if (inv_hold != INV_HOLD_NONE)
        hand_over_tickets_first(inv_hold_detach());
    else
        gomp_unheld_end();
    acquire_within((int64_t)limit_ns);
    return inv_hold != INV_HOLD_NONE;
}

const struct inv_give_way gomp_give_way = {way_wanted, let_others_go_first, gomp_unheld_begin};

void gomp_unlock_wake (int *addr, int count)
{
    enum { PATIENCE_NS = 1000000 };
    gomp_unpark(addr, count);
    if (__builtin_expect(inv_polls_until != 0, 0) && inv_polls() && inv_hold != INV_HOLD_NONE &&
        inv_managed() && gomp_threads_queued())
        let_others_go_first(PATIENCE_NS);
}

/* --- workers */

static void init_thread (void)
{
    struct gomp_thread *thr = gomp_thread();
    gomp_sem_init(&thr->release, 0);
}

/* A bound worker: runs the implicit task that is assigned to it, helps with explicit tasks
 * while the region is open, waits for the next assignment. */
static void *bound_worker_main (void *arg)
{
    struct gomp_worker *self = arg;
    struct gomp_thread *thr = gomp_thread();
    init_thread();
    if (atomic_load_explicit(&self->word, memory_order_relaxed) != 0)
        gomp_hold_acquire(); /* an implicit task is assigned already */
    int seen = 0;
    for (;;) {
        INV_TELL(idle_begin());
        while (atomic_load_explicit(&self->word, memory_order_acquire) == seen)
            gomp_wait_while((int *)&self->word, seen);
        INV_TELL(idle_end());
        seen = atomic_load_explicit(&self->word, memory_order_acquire);
        struct gomp_region *region =
            atomic_exchange_explicit(&self->region, NULL, memory_order_acquire);
        if (seen & GOMP_WORKER_QUIT)
            break;
        if (!region)
            continue; /* a call for help that came too late, or an assignment that is done already */
        if (inv_managed() && inv_hold == INV_HOLD_NONE)
            gomp_hold_acquire();
        gomp_region_run_bound(region, self->id, self, &seen);
    }
    thr->thread_pool = NULL;
    thr->task = NULL;
    gomp_pool_donate();
    gomp_unheld_end();
    gomp_hold_yield();
    free(self);
    return NULL;
}

/* A worker with implicit task `id` of the region, or with none (NULL).  Returns an error number. */
static int create_worker (struct gomp_worker **made, struct gomp_region *region, unsigned id)
{
    struct gomp_worker *w = gomp_malloc_cleared(sizeof *w);
    inv_assert((region == NULL) == (id == 0)); /* 0 is the master's */
    w->region = region;
    w->id = id;
    atomic_store_explicit(&w->word, region ? GOMP_WORKER_CALL : 0, memory_order_relaxed);
    int error = gomp_create_thread(&w->handle, &gomp_thread_attr, bound_worker_main, w);
    if (error)
        free(w);
    else
        *made = w;
    return error;
}

struct gomp_worker *gomp_worker_start (struct gomp_region *region, unsigned id)
{
    struct gomp_worker *w = NULL;
    int error = create_worker(&w, region, id);
    if (error)
        gomp_fatal("Thread creation failed: %s", strerror(error));
    return w;
}

/* One thread at a time looks how many workers there may be and makes them. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

struct gomp_worker *gomp_workers_make (unsigned wanted)
{
    INV_UNCANCELLED;
    struct gomp_worker *list = NULL, *w;
    pthread_mutex_lock(&making);
    unsigned long spare = gomp_threads_to_spare();
    for (; wanted > 0 && spare > 0 && create_worker(&w, NULL, 0) == 0; wanted--, spare--) {
        w->next = list;
        list = w;
    }
    pthread_mutex_unlock(&making);
    return list;
}

/* Workers that the calling thread has taken for its next nested region. */
static __thread struct gomp_worker *in_hand __attribute__((tls_model("initial-exec")));

static void take_in_hand (struct gomp_worker *w)
{
    w->next = in_hand;
    in_hand = w;
}

static struct gomp_worker *take_idle (struct gomp_worker **idle)
{
    gomp_spinlock_lock(&sched_lock);
    struct gomp_worker *w = *idle;
    if (w)
        *idle = w->next;
    gomp_spinlock_unlock(&sched_lock);
    return w;
}

static unsigned take_all_in_hand (struct gomp_worker *list)
{
    unsigned count = 0;
    for (struct gomp_worker *next, *w = list; w; w = next, count++) {
        next = w->next;
        take_in_hand(w);
    }
    return count;
}

unsigned gomp_nested_workers_take (struct gomp_worker **idle, unsigned wanted)
{
    unsigned count = 0;
    struct gomp_worker *w;
    gomp_nested_workers_return(idle); /* of a region that has become smaller than it was to be */
    for (; count < wanted && (w = take_idle(idle)); count++)
        take_in_hand(w);
    if (count < wanted && !gomp_refused_lately())
        count += take_all_in_hand(gomp_workers_make(wanted - count));
    if (count < wanted)
        gomp_thread_refused();
    return count;
}

struct gomp_worker *gomp_nested_worker (struct gomp_worker **idle, struct gomp_region *region,
                                        unsigned id)
{
    struct gomp_worker *w = in_hand;
    if (w)
        in_hand = w->next;
    else
        w = take_idle(idle);
    if (!w)
        return gomp_worker_start(region, id);
    gomp_worker_assign(w, region, id);
    return w;
}

void gomp_nested_worker_return (struct gomp_worker **idle, struct gomp_worker *w)
{
    gomp_spinlock_lock(&sched_lock);
    w->next = *idle;
    *idle = w;
    gomp_spinlock_unlock(&sched_lock);
}

void gomp_nested_workers_return (struct gomp_worker **idle)
{
    for (struct gomp_worker *w; (w = in_hand);) {
        in_hand = w->next;
        gomp_nested_worker_return(idle, w);
    }
}

void gomp_worker_assign (struct gomp_worker *w, struct gomp_region *region, unsigned id)
{
    inv_assert(region && id > 0 && id < region->start.nthreads);
    w->id = id;
    /* release: partner is bound_worker_main's acquire; it may be awake for a call for help and
     * find this before the word is raised */
    atomic_store_explicit(&w->region, region, memory_order_release);
    atomic_fetch_add_explicit(&w->word, GOMP_WORKER_CALL, memory_order_release);
    gomp_unpark((int *)&w->word, 1);
}

void gomp_worker_quit (struct gomp_worker *w)
{
    /* The last access: the worker may be awake for a call for help, see this at once, and free w.
     * To wake it only the address is used. */
    int *word = (int *)&w->word;
    atomic_fetch_or_explicit(&w->word, GOMP_WORKER_QUIT, memory_order_release);
    gomp_unpark(word, 1);
}

static bool help_waiting (void *arg)
{
    (void)arg;
    return gomp_help_waiting();
}

/* Hands the caller's hold over to one of those that are counted, if there is one.  True: the caller
 * has no hold any more. */
static bool hand_hold_over (_Atomic unsigned *count, bool (*place) (int hold))
{
    if (atomic_load_explicit(count, memory_order_relaxed) == 0)
        return false;
    gomp_contexts_publish();
    int hold = inv_hold_detach();
    inv_assert(inv_hold == INV_HOLD_NONE);
    if (hold == INV_HOLD_NONE || place(hold))
        return true;
    inv_hold_begin(hold);
    return false;
}

/* Spin for work; false: for too long.  (That other threads have taken what was in sight before we
 * came to it is no reason to give the core up.) */
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
    if ((gomp_contexts_tickets_first() || take_ticket_first()) &&
        (gomp_run_ticket() || gomp_contexts_run_others()))
        return true;
    if (hand_hold_over(&gomp_ready_count, place_on_ready))
        return true;
    return gomp_contexts_run() || gomp_run_ticket() || gomp_help_tasks() ||
           hand_hold_over(&gomp_unheld_waiting, gomp_unheld_place) || gomp_contexts_steal() ||
           idle_for_work();
}

/* Free workers that exist, how many of them pools may need, and a word on which to tell the
 * surplus: raised after `kept` has become less (seq_cst; partner: wait_for_hold, which reads
 * the word before it compares the two). */
static _Atomic int free_workers, kept;
static _Atomic uint32_t leave_word;

/* See gomp_free_workers_started.  Written by starters, after `starting` and before free_workers (seq_cst;
 * partner: only_ours_left). */
static _Atomic unsigned started;

/* The signals that the master of the last pool to grow had blocked.  Free workers have the same
 * mask, as a team's threads have with stock libgomp, whichever thread creates them: the watchdog,
 * which may, blocks all, and a handler for faults must run where the fault is. */
static sigset_t program_signals;

void gomp_workers_keep (int more)
{
    int before = atomic_fetch_add(&kept, more);
    inv_assert(before >= 0 && before + more >= 0);
    if (more <= 0)
        return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    gomp_spinlock_lock(&sched_lock);
    program_signals = mask;
    gomp_spinlock_unlock(&sched_lock);
}

static void take_program_signals (void)
{
    gomp_spinlock_lock(&sched_lock);
    sigset_t mask = program_signals;
    gomp_spinlock_unlock(&sched_lock);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* So many may stay: as many as implicit tasks may sleep in barriers, and while they do, some on their
 * way. */
static int enough_workers (void)
{
    enum { ON_THEIR_WAY = 8 };
    int enough = atomic_load(&kept);
    return enough > 0 ? enough + ON_THEIR_WAY : 0;
}

void gomp_workers_trim (bool wait)
{
    enum { PATIENCE_NS = 500000000, LOOK_NS = 50000 };
    int excess = atomic_load(&free_workers) - atomic_load(&kept);
    if (excess <= 0)
        return;
    atomic_fetch_add(&leave_word, 1);
    inv_futex_wake(&leave_word, INT_MAX, false);
    while (excess-- > 0 && inv_managed() &&
           (call_spare(INV_HOLD_NONE) || inv_parked_wake(INV_HOLD_NONE)))
        ;
    const struct timespec look = {0, LOOK_NS};
    uint64_t start = inv_now_ns();
    while (wait && atomic_load(&free_workers) > enough_workers() &&
           inv_now_ns() - start < PATIENCE_NS)
        nanosleep(&look, NULL);
}

/* Implicit tasks that have not started wait for a thread which the system does not give us, and the
 * caller, which sleeps, for them: no other worker is there, nor a watchdog, which would see it. */
void gomp_check_starved (void)
{
    if (gomp_refused_ever() && gomp_tickets_left() && atomic_load(&free_workers) == 0 &&
        !gomp_progress_start())
        gomp_fatal_starved();
}

/* A worker that is one too many is on its way to where lenders find it.  Set and cleared by that
 * worker (seq_cst; no data goes with it). */
static _Atomic bool staying;

/* While work waits one must stay where lenders find it: is that the caller? */
static bool must_stay (void)
{
    /* Partner: the fence of gomp_want_cores, after which a thread that has queued work looks at
     * `starting`, of which the caller was one. */
    atomic_thread_fence(memory_order_seq_cst);
    return gomp_work_waiting() && inv_parked_count() == 0 && !atomic_exchange(&staying, true);
}

/* Is the calling worker, which is not parked, one too many?  (Work that is queued after we looked
 * does not find us among the parked, so its master makes another worker.)  *stays: it is, and stays
 * all the same; it clears `staying` when it has been found. */
static bool end_if_not_needed (struct free_worker *self, bool *stays)
{
    int n = atomic_load(&free_workers), enough = enough_workers();
    if (n <= enough)
        return false;
    atomic_store_explicit(&self->ending, true, memory_order_relaxed);
    while (n > enough && !(*stays = must_stay()))
        if (atomic_compare_exchange_weak(&free_workers, &n, n - 1))
            return true;
    atomic_store_explicit(&self->ending, false, memory_order_relaxed);
    return false;
}

/* Runs an implicit task without a hold, if the watchdog wants a thread to. */
static bool run_one_unheld (void)
{
    if (!gomp_progress_take_extra())
        return false;
    gomp_unheld_begin();
    if (!gomp_run_ticket())
        gomp_contexts_run_others();
    gomp_unheld_end();
    return true;
}

/* A free worker without a hold: parks where lenders find it.  False: ends. */
static bool wait_for_hold (struct free_worker *self)
{
    uint32_t seen = atomic_load(&leave_word);
    gomp_contexts_publish();
    if (!inv_managed()) { /* any more */
        inv_futex_wait(&leave_word, seen, -1, false);
        return true;
    }
    if (gomp_unheld_end() || run_one_unheld()) /* the watchdog may have let us finish without a hold */
        return true;
    bool stays = false;
    if (end_if_not_needed(self, &stays))
        return false;
    gomp_carrier_rest();
    INV_TELL(idle_begin());
    if (!inv_worker_park(&leave_word, seen))
        park_spare();
    INV_TELL(idle_end());
    if (inv_hold != INV_HOLD_NONE)
        gomp_idle_slept();
    if (stays)
        atomic_store(&staying, false);
    if (inv_hold == INV_HOLD_NONE && !run_one_unheld())
        gomp_stop_wanting();
    return true;
}

/* A free worker: takes unstarted implicit tasks and queued threads while it holds a core, and is
 * parked while it holds none. */
static void *free_worker_main (void *arg)
{
    init_thread();
    take_program_signals();
    if ((int)(intptr_t)arg != INV_HOLD_NONE)
        inv_hold_begin((int)(intptr_t)arg);
    struct free_worker self = {0};
    enter_list(&self);
    int before = atomic_fetch_sub(&starting, 1);
    inv_assert(before > 0);
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
    leave_list(&self);
    gomp_carrier_leave();
    gomp_thread()->thread_pool = NULL; /* the last region's, which may be gone */
    gomp_pool_donate();
    return NULL;
}

bool gomp_free_worker_start (int hold)
{
    pthread_t handle;
    atomic_fetch_add(&starting, 1);
    atomic_fetch_add(&started, 1);
    atomic_fetch_add(&free_workers, 1);
    if (gomp_create_thread(&handle, &gomp_thread_attr, free_worker_main, (void *)(intptr_t)hold) != 0) {
        int workers = atomic_fetch_sub(&free_workers, 1), begins = atomic_fetch_sub(&starting, 1);
        inv_assert(workers > 0 && begins > 0);
        gomp_thread_refused();
        return false;
    }
    pthread_detach(handle);
    return true;
}

unsigned gomp_free_workers (void)
{
    int n = atomic_load(&free_workers);
    return n > 0 ? (unsigned)n : 0;
}

bool gomp_free_workers_started (unsigned *n)
{
    *n = atomic_load(&started);
    return atomic_load(&starting) == 0;
}

bool gomp_run_unheld (unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct gomp_waiter *w = gomp_ready_pop(INV_HOLD_NONE);
        if (w)
            gomp_waiter_wake(w, INV_HOLD_NONE);
        else if (!gomp_tickets_left() && gomp_carriers_look().ready == 0)
            break;
        else {
            gomp_progress_add_extra();
            if (!inv_parked_wake_unheld(gomp_unheld_core(i, count)) &&
                !call_spare(INV_HOLD_NONE) && !gomp_free_worker_start(INV_HOLD_NONE))
                return false;
        }
    }
    return true;
}

void gomp_sched_forget (void)
{
    atomic_store(&sched_lock.held, 0);
    making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    in_hand = NULL;
    spares = NULL;
    present = NULL;
    atomic_store(&starting, 0);
    atomic_store(&free_workers, 0);
    atomic_store(&kept, 0);
    atomic_store(&staying, false);
    atomic_store(&tickets_first, 0);
    gomp_ready_forget();
    gomp_unheld_forget();
    gomp_carriers_forget();
}
